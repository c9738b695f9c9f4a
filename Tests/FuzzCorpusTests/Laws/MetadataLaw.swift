import OAuth
import RingbackBase

/// Metadata documents. The first line of an input is the configured issuer, the rest the document: it speaks for that
/// issuer alone, and names no place that secrets must not go to.
enum MetadataLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (line, body) = bytes.headLineAndRest
        let issuer = line.isEmpty ? "https://id.example.org/realms/main" : line
        if let requests = try? ProviderMetadata.discoveryRequests(issuer: issuer) {
            for request in requests {
                let url = try WebURL(parsing: request.url)
                try hold("the issuer's own host is asked", url.origin == (try WebURL(parsing: issuer)).origin)
                try hold("nothing but a place is asked for", url.query == nil && url.fragment == nil && url.isSecure)
            }
        }
        let response = HTTPResponse(status: 200, body: Secret(bytes: body))
        guard let metadata = try? ProviderMetadata(parsing: response, issuer: issuer) else { return }
        let home = try WebURL(parsing: issuer)
        guard let document = try? JSON(parsing: body) else { return }
        try hold("the issuer stays as configured", metadata.issuer == issuer)
        try hold("tokens name what the document states", metadata.idTokenIssuer == document["issuer"]?.string)
        if metadata.idTokenIssuer?.contains("{tenantid}") != true {
            try hold("a document speaks for its issuer", metadata.idTokenIssuer == issuer)
        }
        let endpoints = [
            metadata.authorizationEndpoint, metadata.tokenEndpoint, metadata.jwksURI, metadata.userinfoEndpoint,
            metadata.revocationEndpoint, metadata.endSessionEndpoint, metadata.deviceAuthorizationEndpoint,
            metadata.pushedAuthorizationRequestEndpoint, metadata.registrationEndpoint,
        ]
        for endpoint in endpoints.compactMap(\.self) where !endpoint.isEmpty {
            let url = try WebURL(parsing: endpoint)
            try hold("secrets may go to an endpoint", url.isSecure && url.fragment == nil)
            try hold("an endpoint at home needs an issuer at home", !url.isLoopback || home.isLoopback)
            let last = url.host?.split(separator: ".").last?.utf8.first ?? 0
            let isAddress = url.host?.contains(":") == true || (0x30...0x39).contains(last)
            let isNear = url.host == home.host || (url.isLoopback && home.isLoopback)
            try hold("an address is the issuer's own", !isAddress || isNear)
        }
        if (try? metadata.checkAuthorizationRequests()) != nil {
            try hold("S256 is offered, or nothing is said", metadata.codeChallengeMethods?.contains("S256") != false)
        }
        try hold("it has nothing to add to itself", metadata.completed(by: metadata) == metadata)
    }
}
