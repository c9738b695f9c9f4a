/// Describes the difference between the issuer in the metadata and the configured one.
enum IssuerDifference {
    static func sentence(stated: String, configured: String) -> String {
        let words = CheckedText.description(stated) ?? ""
        return "the issuer in it is “\(words)”, the configured one is “\(configured)”\(hint(stated, configured))"
    }

    private static func hint(_ stated: String, _ configured: String) -> String {
        if stated == configured + "/" { return "; the configured one lacks the slash at the end" }
        if configured == stated + "/" { return "; the configured one has a slash at the end" }
        let schemes = [stated, configured].map { $0.prefix { $0 != ":" } }
        if Set(schemes) == ["http", "https"], stated.drop(while: { $0 != ":" }) == configured.drop(while: { $0 != ":" })
        {
            return "; one has http, the other https"
        }
        return ""
    }
}
