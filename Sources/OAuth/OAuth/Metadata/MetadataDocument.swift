import HTTPMessages
import StrictJSON

/// Reads members of a metadata document. A member that is not usable counts as absent and is noted: what does not need
/// it, such as a refresh, works without it.
struct MetadataDocument {
    let object: JSONObject
    let issuer: WebURL
    /// Why members are not usable, in words that begin with their names.
    private(set) var unusable: [String] = []

    init(object: JSONObject, issuer: WebURL) {
        self.object = object
        self.issuer = issuer
    }

    /// The endpoint; nil if it is absent or not usable.
    mutating func endpoint(_ name: String) -> String? {
        do throws(OAuthError) {
            return try checked(name)
        } catch {
            if case .invalid(_, let reason) = error { unusable.append(reason) }
            return nil
        }
    }

    /// Throws `.invalid` for an endpoint that is not usable.
    private func checked(_ name: String) throws(OAuthError) -> String? {
        switch object[name] {
        case nil, .null?: return nil
        case .string(let text)?:
            guard let url = EndpointRule.url(text) else {
                throw .invalid(.metadata, reason: "\(name) is not an https URL (or http on loopback)")
            }
            guard EndpointRule.allows(url, of: issuer) else {
                throw .invalid(.metadata, reason: "\(name) is at a local or IP address that is not the issuer's")
            }
            return text
        default: throw .invalid(.metadata, reason: "\(name) is not text")
        }
    }

    func requiredEndpoint(_ name: String) throws(OAuthError) -> String {
        guard let endpoint = try checked(name) else { throw .invalid(.metadata, reason: "no \(name)") }
        return endpoint
    }

    /// False if the member is absent or not a boolean.
    func flag(_ name: String) -> Bool { object[name]?.bool ?? false }

    /// The texts of the list; nil if it is absent or not a list. One text in place of a list is separated by spaces.
    mutating func texts(_ name: String) -> [String]? {
        switch object[name] {
        case nil, .null?: return nil
        case .array(let elements)?:
            let texts = elements.compactMap(\.string)
            if texts.count == elements.count { return texts }
            unusable.append("\(name) is not a list of texts")
            return texts.isEmpty ? nil : texts
        case .string(let text)?:
            unusable.append("\(name) is not a list of texts")
            return text.split(separator: " ").map(String.init)
        default:
            unusable.append("\(name) is not a list of texts")
            return nil
        }
    }
}
