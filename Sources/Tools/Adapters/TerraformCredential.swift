internal import StrictJSON

/// The protocol of the credentials helpers of Terraform and OpenTofu: an action and a host as arguments, JSON on standard
/// output. An error is a text on standard error and a status.
public struct TerraformCredential: Sendable, Equatable {
    /// What the tool asks a helper to do.
    public enum Action: String, Sendable, CaseIterable {
        case get
        /// `terraform login`. Ringback stores no token.
        case store
        /// `terraform logout`. There is nothing to remove.
        case forget
    }

    /// The most bytes that are read of what is to be stored.
    public static let maxInput = 65_536
    /// The answer for a host that has no token.
    public static let none = Array("{}\n".utf8)

    public let request: AdapterRequest

    /// - Parameter host: a host, with a port where it is not 443.
    /// - Throws: for anything else.
    public init(host: String) throws(AdapterFailure) {
        let isHost = host.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "-.:[]".utf8.contains(byte)
            }
        }
        guard !host.isEmpty, isHost else { throw AdapterFailure("The host has characters that no host has.") }
        request = try AdapterRequest(web: "https://\(host)/")
    }

    /// The answer to ``Action/get``.
    ///
    /// - Throws: for a token that cannot be in a header field, and for an origin that wants another field.
    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        let answer: JSON = ["token": .string(try credential.bearer(for: "Terraform"))]
        return answer.serialized() + [0x0A]
    }
}
