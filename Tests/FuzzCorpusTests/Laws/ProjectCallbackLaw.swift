import RingbackBase
import SupabaseAuth

/// Callback URLs of a Supabase project: one code, one no or one message; tokens are refused wherever they stand; the
/// flow's key is the text's own.
enum ProjectCallbackLaw {
    static func check(_ bytes: [UInt8]) throws {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let url = try? WebURL(parsing: text), let callback = try? SupabaseCallback(parsing: url) else { return }
        let query = try FormEncoding.parse(
            Array((url.query ?? "").utf8), needed: ["code", "error", "error_code", "flow"])
        let fragment =
            (try? FormEncoding.parse(Array((url.fragment ?? "").utf8), needed: ["code", "error", "error_code", "flow"]))
            ?? []
        func values(_ name: String) -> [String] { query.filter { $0.name == name }.map(\.value) }

        let tokens: Set<String> = ["access_token", "refresh_token", "id_token", "provider_token"]
        try hold("no token arrives in a URL", !(query + fragment).contains { tokens.contains($0.name) })
        switch callback.outcome {
        case .code(let code):
            try hold("there is exactly one code, in the query", values("code") == [code.revealed()])
            try hold("there is no error beside a code", values("error").allSatisfy(\.isEmpty))
            try hold("a code is printable", code.revealed().isPrintableASCII)
            try hold("a code is not too long", (1...8_192).contains(code.count))
        case .error(let refusal):
            try hold("there is no code beside an error", values("code").allSatisfy(\.isEmpty))
            try hold("a no's code is short and plain", refusal.code.isPrintableASCII && refusal.code.count <= 64)
            try hold("a browser's redirect has no status", refusal.status == 0)
            try hold("a browser's redirect ends no session", !refusal.endsSession && !refusal.asksForRefresh)
            try checkWords(refusal.message)
        case .message(let words): try checkWords(words)
        }
        if let key = callback.queryKey { try hold("the key is the parameter", values("flow") == [key]) }
        if let key = callback.pathKey {
            try hold("the key is the end of the path", url.path.hasSuffix("/" + key) && !key.contains("/"))
        }
        let isLoopback = url.isLoopback && ["http", "https"].contains(url.scheme)
        let key = callback.key(at: url)
        try hold("on loopback the path has the key", key == (isLoopback ? callback.pathKey : callback.queryKey))
        if let key { try hold("a key's digest is of its length", SupabaseCallback.digest(ofKey: key).count == 32) }
    }

    /// A server's words have no control characters, and an end.
    private static func checkWords(_ words: String?) throws {
        guard let words else { return }
        try hold(
            "words hold no control character", !words.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F })
        try hold("words have an end", !words.isEmpty && words.count <= 500)
    }
}
