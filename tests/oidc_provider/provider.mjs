// A certified OpenID Connect provider for tests: oidc-provider, with its own pages for signing in and for consent.
// Usage: node provider.mjs PORT (0: a free one) ALGORITHM PEOPLE.json CLIENT_ID CLIENT_SECRET REDIRECT_URI
// Whoever types a name of PEOPLE.json as login is that subject. Each start has a new key. It prints its issuer.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { exportJWK, generateKeyPair } from "jose";
import { Provider } from "oidc-provider";

const [port, algorithm, people, clientId, secret, redirect] = process.argv.slice(2);
const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
const key = { ...(await exportJWK(privateKey)), alg: algorithm, use: "sig", kid: crypto.randomUUID() };
const server = createServer();
await new Promise((resolve) => server.listen(Number(port), "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: clientId,
      ...(secret ? { client_secret: secret } : { token_endpoint_auth_method: "none" }),
      redirect_uris: [redirect],
      id_token_signed_response_alg: algorithm,
    },
  ],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name", "groups"] },
  cookies: { keys: [crypto.randomUUID()] },
  enabledJWA: { idTokenSigningAlgValues: [algorithm] },
  features: { devInteractions: { enabled: true } },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...JSON.parse(readFileSync(people, "utf8"))[id] }) }),
  jwks: { keys: [key] },
  pkce: { required: () => true },
});
server.on("request", provider.callback());
console.log(JSON.stringify({ issuer }));
