import OAuth
import RingbackBase

/// Answers to a registration. The first line of an input is the status, and `public` for a client that asked to be one.
/// What manages the registration is found in broken answers too, and is sent to the provider alone.
enum RegistrationAnswerLaw {
    private static let issuer = "https://id.example.org/realms/main"

    static func check(_ bytes: [UInt8]) throws {
        let (line, body) = bytes.headLineAndRest
        let words = line.split(separator: " ")
        let status = words.first.flatMap { Int($0) }.map { min(max($0, 200), 599) } ?? 201
        let response = HTTPResponse(
            status: status, fields: HTTPFields([("Content-Type", "application/json")]), body: Secret(bytes: body))
        let request = try ClientRegistrationRequest(
            redirectTemplate: "http://127.0.0.1:{port}/callback/work", scopes: ["openid"],
            authentication: words.contains("public") ? .none : .clientSecretBasic)
        guard let answer = try? RegistrationResponse(reading: response, issuer: issuer) else { return }
        try hold("only a success registers", (200..<300).contains(status))
        let object = (try? JSON(parsing: body))?.object
        if let management = answer.management {
            let token = management.token.revealed()
            try hold("a management token is one word", token.isPrintableASCII && !token.isEmpty && !token.contains(" "))
            if let object {
                try hold("a management token is the member", object["registration_access_token"]?.string == token)
            }
            if let uri = management.uri {
                let url = try WebURL(parsing: uri)
                try hold("it is sent encrypted", url.scheme == "https")
                try hold("it is sent to no address of this machine", !url.isLoopback)
            }
        }
        guard let client = try? answer.client(asked: request) else { return }
        try hold("a client is the member", object?["client_id"]?.string == client.clientID)
        try hold("a client is not too long", (1...1_024).contains(client.clientID.utf8.count))
        if let secret = client.secret {
            try hold("a secret is the member", object?["client_secret"]?.string == secret.revealed())
            try hold("a secret breaks out of no header", secret.revealed().isPrintableASCII)
            try hold("a public client keeps no secret", client.authentication != .none)
        } else {
            try hold("without a secret a client is public", client.authentication == .none)
        }
        try hold("an end is a time", (1...253_402_300_799).contains(client.secretExpiresAt ?? 1))
    }
}
