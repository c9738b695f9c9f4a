"""The least of a provider that oidc-agent accepts, so that it has a token to return. Not the sandbox: oidc-agent sends
form values without escaping their spaces, which the sandbox refuses as malformed."""

from web import Party


class TokenIssuer(Party):
    """Answers discovery, and every token request with the same token."""

    def __init__(self, access_token):
        super().__init__()
        self.access_token = access_token

    def respond(self, request):
        url = self.origin
        if request.method == "POST":
            return 200, {}, {
                "access_token": self.access_token, "refresh_token": "bench", "token_type": "Bearer", "expires_in": 86_400,
                "scope": "openid offline_access",
            }
        return 200, {}, {
            "issuer": url, "authorization_endpoint": url + "/authorize", "token_endpoint": url + "/token",
            "jwks_uri": url + "/keys", "userinfo_endpoint": url + "/userinfo", "response_types_supported": ["code"],
            "scopes_supported": ["openid", "offline_access"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
        }
