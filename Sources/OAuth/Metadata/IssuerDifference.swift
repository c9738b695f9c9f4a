/// Describes the difference between the issuer in the metadata and the configured one.
enum IssuerDifference {
    static func sentence(stated: String, configured: String) -> String {
        let words = CheckedText.description(stated) ?? ""
        return "the issuer in it is “\(words)”, the configured one is “\(configured)”\(hint(stated, configured))"
    }

    private static func hint(_ stated: String, _ configured: String) -> String {
        if stated == configured + "/" { return "; the slash at the end is missing in the configuration" }
        if configured == stated + "/" { return "; the slash at the end is too much in the configuration" }
        let schemes = [stated, configured].map { $0.prefix { $0 != ":" } }
        if Set(schemes) == ["http", "https"], stated.drop(while: { $0 != ":" }) == configured.drop(while: { $0 != ":" })
        {
            return "; they differ in http and https"
        }
        return ""
    }
}
