import HTTPMessages
import StrictJSON

/// Reads members of a metadata document. An endpoint that breaks the rule makes the whole document invalid, because its
/// other members cannot be trusted either.
struct MetadataDocument {
    let object: JSONObject
    let issuer: WebURL

    /// The endpoint; nil if it is absent. Throws `.invalid`.
    func endpoint(_ name: String) throws(OAuthError) -> String? {
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
        guard let endpoint = try endpoint(name) else { throw .invalid(.metadata, reason: "no \(name)") }
        return endpoint
    }

    /// False if the member is absent or not a boolean.
    func flag(_ name: String) -> Bool { object[name]?.bool ?? false }

    /// The list; nil if it is absent. Throws `.invalid` for another type.
    func texts(_ name: String) throws(OAuthError) -> [String]? {
        switch object[name] {
        case nil, .null?: return nil
        case .array(let elements)?:
            let texts = elements.compactMap(\.string)
            guard texts.count == elements.count else {
                throw .invalid(.metadata, reason: "\(name) is not a list of texts")
            }
            return texts
        default: throw .invalid(.metadata, reason: "\(name) is not a list of texts")
        }
    }
}
