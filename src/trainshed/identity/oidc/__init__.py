"""An OpenID Connect provider, asked over HTTP: implements `core.accounts.oidc.IdentityProvider`.

The assembly imports it only where the settings name a provider.
"""
