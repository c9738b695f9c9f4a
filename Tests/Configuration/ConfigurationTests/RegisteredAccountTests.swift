import OAuth
import Testing

@testable import Configuration

@Suite struct `An account whose client was registered` {
    private func account(_ lines: String) throws -> AccountConfiguration? {
        let folder = try Folder()
        try folder.write("[accounts.a]\nissuer = \"https://id.example.org\"\nclient_id = \"c\"\n\(lines)\n")
        return try folder.load().accounts.first
    }

    @Test func `says that its secret is in the vault, and nobody reads it from here`() throws {
        let registered = try account("client_secret_registered = true\nclient_authentication = \"client_secret_post\"")
        #expect(registered?.clientSecret == .registered && registered?.clientAuthentication == .clientSecretPost)
        #expect(try registered?.readClientSecret(user: Folder.user) == nil)
        #expect(registered?.notes.contains { $0.contains("in the vault") } == true)
        // Without a word, the provider's metadata decide, as for any secret.
        let undecided = try account("client_secret_registered = true")
        #expect(undecided?.clientSecret == .registered && undecided?.clientAuthentication == nil)
    }

    @Test func `may say where the browser goes after a sign-out`() throws {
        #expect(try account("")?.postLogoutRedirectURI == nil)
        for uri in ["https://app.example.org/bye?a=b", "http://127.0.0.1:8080/bye"] {
            #expect(try account("post_logout_redirect_uri = \"\(uri)\"")?.postLogoutRedirectURI == uri)
        }
    }
}
