"""Signing in with a provider: imported only where the settings name one."""

from urllib.parse import urlsplit

from trainshed.api.call import Method
from trainshed.api.provider_sign_in import LoginHandlers, ProviderSignInHandlers, provider_methods
from trainshed.assembly.access import Access
from trainshed.assembly.shared import SharedParts
from trainshed.identity.oidc.provider import OidcProvider, ProviderSettings
from trainshed.service.browser_logins import BrowserLogins
from trainshed.service.provider_sign_in import ProviderSignIns
from trainshed.service.sign_in import SignInService
from trainshed.settings.table import Settings


def provider_title(settings: Settings) -> str:
    """What people call the provider; empty where there is none."""
    return settings.oidc_title or urlsplit(settings.oidc_issuer).hostname or ""


def make_provider_methods(shared: SharedParts, access: Access, sign_ins: SignInService) -> tuple[Method, ...]:
    settings = shared.settings
    provider = OidcProvider(
        ProviderSettings(
            issuer=settings.oidc_issuer,
            client_id=settings.oidc_client_id,
            title=provider_title(settings),
            secret_file=settings.oidc_client_secret_file,
            scopes=settings.oidc_scopes,
            name_claim=settings.oidc_name_claim,
            groups_claim=settings.oidc_groups_claim,
        ),
        shared.clock,
    )
    people = ProviderSignIns(
        provider,
        access.accounts,
        sign_ins,
        access.secret,
        adds_accounts=settings.oidc_new_accounts,
    )
    logins = BrowserLogins(access.accounts, access.people.principal, settings.login_lifetime)
    return provider_methods(ProviderSignInHandlers(people, settings.public_url), LoginHandlers(logins))
