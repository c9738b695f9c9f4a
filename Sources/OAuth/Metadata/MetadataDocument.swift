import HTTPMessages
import StrictJSON

/// The members of a metadata document, each taken out with its rule. An endpoint that we would not send secrets to
/// spoils the whole document: who writes one such line is not to be believed in the others.
struct MetadataDocument {
    let object: JSONObject
    let issuer: WebURL

    /// The endpoint, nil if the document has none.
    func endpoint(_ name: String) throws(OAuthError) -> String? {
        switch object[name] {
        case nil, .null?: return nil
        case .string(let text)?:
            guard let url = EndpointRule.url(text) else {
                throw .invalid(.metadata, reason: "\(name) is not an https URL (or http on loopback)")
            }
            guard EndpointRule.allows(url, of: issuer) else {
                throw .invalid(.metadata, reason: "\(name) is at an address that is not the issuer's")
            }
            return text
        default: throw .invalid(.metadata, reason: "\(name) is not text")
        }
    }

    func requiredEndpoint(_ name: String) throws(OAuthError) -> String {
        guard let endpoint = try endpoint(name) else { throw .invalid(.metadata, reason: "no \(name)") }
        return endpoint
    }

    /// False if the document says nothing, or nothing that is true.
    func flag(_ name: String) -> Bool { object[name]?.bool ?? false }

    /// The list, nil if the document has none.
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
