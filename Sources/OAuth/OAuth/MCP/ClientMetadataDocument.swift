internal import HTTPMessages

/// A client id that is the URL of a document about the client, which `ringback client-metadata` prints.
public enum ClientMetadataDocument {
    /// The redirect URI that all accounts share whose client id is such a document. The document has it without a port.
    public static let redirectURI = "http://127.0.0.1:{port}/callback"

    /// Throws `.misconfigured` for a URL that cannot be a client id: it must be https with a path, without a fragment.
    public static func check(_ url: String) throws(OAuthError) {
        guard let parsed = try? WebURL(parsing: url), parsed.scheme == "https", parsed.fragment == nil,
            parsed.path.utf8.count > 1
        else {
            throw .misconfigured(reason: "must be an https URL with a path and without a fragment")
        }
    }
}
