/// The form of a sign-in page, filled in as a user would: the hidden fields as they are, the choice or the name for the
/// user, and the first button. Reads enough HTML for a plain form; no script, no style.
struct SignInPage {
    private(set) var action: String
    private(set) var fields: [(String, String)] = []

    /// Nil if the page has no form.
    init?(_ html: String, user: String) {
        var action: String?
        var hasButton = false
        for tag in SignInPage.tags(in: html) {
            let attributes = tag.attributes
            switch tag.name {
            case "form" where action == nil: action = attributes["action"] ?? ""
            case "/form" where action != nil:
                self.action = action ?? ""
                return
            case "input" where action != nil:
                guard let name = attributes["name"] else { break }
                switch attributes["type"] ?? "text" {
                case "radio", "checkbox": if attributes["value"] == user { fields.append((name, user)) }
                case "hidden": fields.append((name, attributes["value"] ?? ""))
                case "text", "email": fields.append((name, user))
                default: break
                }
            case "button" where action != nil && !hasButton && (attributes["type"] ?? "submit") == "submit":
                hasButton = true
                if let name = attributes["name"] { fields.append((name, attributes["value"] ?? "")) }
            default: break
            }
        }
        return nil
    }

    private struct Tag {
        let name: String
        let attributes: [String: String]
    }

    private static func tags(in html: String) -> [Tag] {
        var tags: [Tag] = []
        var rest = html[...]
        while let start = rest.firstIndex(of: "<") {
            rest = rest[rest.index(after: start)...]
            let name = rest.prefix { !$0.isWhitespace && $0 != ">" }
            rest = rest[name.endIndex...]
            tags.append(Tag(name: name.lowercased(), attributes: takeAttributes(from: &rest)))
        }
        return tags
    }

    private static func takeAttributes(from rest: inout Substring) -> [String: String] {
        var attributes: [String: String] = [:]
        while true {
            rest = rest.drop { $0.isWhitespace || $0 == "/" }
            guard let first = rest.first, first != ">" else {
                rest = rest.dropFirst()
                return attributes
            }
            let name = rest.prefix { !$0.isWhitespace && $0 != "=" && $0 != ">" }
            rest = rest[name.endIndex...]
            guard rest.first == "=" else {
                attributes[name.lowercased()] = ""
                continue
            }
            rest = rest.dropFirst()
            let value: Substring
            if let quote = rest.first, quote == "\"" || quote == "'" {
                value = rest.dropFirst().prefix { $0 != quote }
                rest = rest[value.endIndex...].dropFirst()
            } else {
                value = rest.prefix { !$0.isWhitespace && $0 != ">" }
                rest = rest[value.endIndex...]
            }
            attributes[name.lowercased()] = unescaped(value)
        }
    }

    private static func unescaped(_ text: Substring) -> String {
        var output = ""
        var rest = text
        let entities = [("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'")]
        while let first = rest.first {
            if let (entity, character) = entities.first(where: { rest.hasPrefix($0.0) }) {
                output += character
                rest = rest.dropFirst(entity.count)
            } else {
                output.append(first)
                rest = rest.dropFirst()
            }
        }
        return output
    }
}
