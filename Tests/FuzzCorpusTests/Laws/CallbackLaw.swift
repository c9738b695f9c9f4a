import Cryptography
import OAuth
import RingbackBase

/// Callback URLs: the parts are the text's own, and a response is one state with one of a code and an error.
enum CallbackLaw {
    static func check(_ bytes: [UInt8]) throws {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let url = try? WebURL(parsing: text) else { return }
        try checkParts(of: url, text)
        try checkOrigin(of: url)
        let response = try? AuthorizationResponse(parsing: url)
        if url.fragment == nil, let query = url.query {
            let form = try? AuthorizationResponse(parsingForm: Array(query.utf8))
            try hold("a form means what the same query means", form == response)
        }
        guard let response else { return }
        try checkMeaning(of: response, url)
    }

    private static func checkParts(of url: WebURL, _ text: String) throws {
        try hold("a URL is printable ASCII", text.isPrintableASCII && !text.contains(" "))
        try hold("a URL keeps its text", url.text.utf8.elementsEqual(text.utf8))
        try hold("the scheme comes first", text.lowercased().hasPrefix(url.scheme + ":"))
        let tail = url.path + (url.query.map { "?" + $0 } ?? "") + (url.fragment.map { "#" + $0 } ?? "")
        try hold("path, query and fragment are the end", text.hasSuffix(tail))
        try hold("the query has no fragment", url.query?.contains("#") != true)
        try hold("the path has neither", !url.path.contains("?") && !url.path.contains("#"))
        if let host = url.host {
            try hold("a host is only a host", !host.contains { "/?#@\\[]".contains($0) })
            try hold("behind a host the path is absolute", url.path.isEmpty || url.path.hasPrefix("/"))
        }
        try hold("a port is a port", (0...65_535).contains(url.port ?? 0))
    }

    private static func checkOrigin(of url: WebURL) throws {
        if url.isSecure {
            let host = url.host ?? ""
            let isLocal = host == "localhost" || host == "::1" || host.hasPrefix("127.")
            try hold("secrets go to https or loopback", url.scheme == "https" || (url.scheme == "http" && isLocal))
        }
        guard url.scheme == "https" || url.scheme == "http" else { return }
        try hold("a web URL has a host", url.host?.isEmpty == false)
        let origin = try WebURL(parsing: url.origin)
        try hold("an origin is its own origin", origin.origin == url.origin)
        try hold("an origin is at the same host", origin.host == url.host && origin.isLoopback == url.isLoopback)
        try hold("an origin has no more", origin.path.isEmpty && origin.query == nil && origin.fragment == nil)
    }

    private static func checkMeaning(of response: AuthorizationResponse, _ url: WebURL) throws {
        let pairs = try FormEncoding.parse(Array((url.query ?? "").utf8), needed: ["code", "state", "iss", "error"])
        let all =
            pairs
            + (try FormEncoding.parse(Array((url.fragment ?? "").utf8), needed: ["code", "state", "iss", "error"]))
        func values(_ name: String) -> [String] { pairs.filter { $0.name == name }.map(\.value) }
        let tokens: Set<String> = ["access_token", "refresh_token", "id_token"]
        try hold("no token arrives in a URL", !all.contains { tokens.contains($0.name) })
        try hold("there is exactly one state", values("state") == [response.state.revealed()])
        try hold("a state is not empty", !response.state.isEmpty)
        try hold("an issuer is there once or not", values("iss") == [response.issuer].compactMap(\.self))
        try hold("the key is the state's", response.stateKey == Digest.sha256(response.state.revealedBytes()))
        switch response.outcome {
        case .code(let code):
            try hold("there is exactly one code", values("code") == [code.revealed()])
            try hold("there is no error beside a code", values("error").allSatisfy(\.isEmpty))
            try hold("a code is 1 to 8192 printable characters", code.revealed().isPrintableASCII)
            try hold("a code is not too long", (1...8_192).contains(code.count))
        case .error(let refusal):
            try hold("there is exactly one error", values("error").count == 1)
            try hold("there is no code beside an error", values("code").allSatisfy(\.isEmpty))
            try hold("an error's code is printable ASCII", refusal.code.isPrintableASCII)
            try hold("an error's text is one visible line", refusal.message?.isVisibleLine != false)
            try hold("a browser's redirect ends no session", !refusal.endsGrant)
        }
        if let issuer = response.issuer {
            try hold("another issuer is refused", !response.check(issuer: issuer + "/", isAdvertised: false))
            if !issuer.contains("{") {
                try hold("its own issuer is admitted", response.check(issuer: issuer, isAdvertised: true))
            }
        } else {
            let isError = if case .error = response.outcome { true } else { false }
            try hold(
                "a promised issuer must be there, but for an error",
                response.check(issuer: "https://a", isAdvertised: true) == isError)
        }
    }
}
