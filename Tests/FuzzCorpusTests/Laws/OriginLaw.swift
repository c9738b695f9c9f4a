import RingbackBase

/// Patterns of origins and the URLs that tools look up. The first line is the pattern, the rest the URL.
enum OriginLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (line, rest) = bytes.headLineAndRest
        _ = try? OriginHeader(parsing: line)
        guard let pattern = try? OriginPattern(parsing: line) else { return }
        try hold("what is written is read as the same", try OriginPattern(parsing: pattern.text) == pattern)
        try hold("a pattern is printable", pattern.text.isPrintableASCII)
        let own = OriginPlace(try WebURL(parsing: String(pattern.text.dropLast(2))))
        try hold("a pattern fits its own place", pattern.matches(own))
        guard let url = try? WebURL(parsing: String(decoding: rest, as: UTF8.self)) else { return }
        let place = OriginPlace(url)
        guard pattern.matches(place) else { return }
        try hold("a token goes to the host alone", place.host == pattern.host && place.port == pattern.port)
        try hold("a token goes nowhere in plain text", url.scheme != "http" || url.isLoopback)
        guard !pattern.segments.isEmpty else { return }
        let path = url.path.lowercased()
        for escape in ["%2f", "%5c", "%25", "%00", "/../", "/./"] {
            try hold("an ambiguous path fits no path", !path.contains(escape) && !path.hasSuffix("/.."))
        }
    }
}
