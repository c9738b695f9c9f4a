/// Text inside HTML and XML.
public enum Markup {
    /// The text escaped for the content of an element. With `quotes` it is also safe in the value of an attribute.
    public static func escaped(_ text: String, quotes: Bool = true) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"" where quotes: escaped += "&quot;"
            case "'" where quotes: escaped += "&#39;"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
