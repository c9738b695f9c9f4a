import ArgumentParser
import RingbackBase

struct ClientMetadata: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "client-metadata", abstract: "Print a client-id metadata document for hosting.",
        discussion: """
            An authorization server that supports such documents takes the URL of the document as the client id, so that \
            no client has to be registered. Host the document at that URL, and set client_id_metadata_url of the \
            accounts at MCP servers to it.
            """)

    @Argument(help: ArgumentHelp("The https URL at which the document will be.", valueName: "url"))
    var url: String

    @Option(
        name: .customLong("redirect-uri"),
        help: ArgumentHelp("A redirect URI of one account, beside the usual ones; may be repeated.", valueName: "uri"))
    var redirectURIs: [String] = []

    func validate() throws {
        guard let parsed = try? WebURL(parsing: url), parsed.scheme == "https", parsed.fragment == nil,
            parsed.path.utf8.count > 1
        else { throw ValidationError("The URL is https, with a path and without a fragment.") }
    }

    func run() { Output.json(ClientMetadata.document(url, redirectURIs)) }

    /// - Parameter more: redirect URIs beside the usual ones, perhaps with `{port}`.
    static func document(_ url: String, _ more: [String] = []) -> JSON {
        let uris =
            ["http://127.0.0.1/callback", "http://localhost/callback"]
            + more.map { $0.replacing(":{port}", with: "") }
        return [
            "client_id": .string(url), "client_name": "Ringback", "application_type": "native",
            // RFC 8252 section 7.3: any port of a loopback redirect URI is accepted.
            "redirect_uris": .array(uris.map { .string($0) }),
            "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        ]
    }
}
