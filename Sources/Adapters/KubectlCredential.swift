internal import Encodings
internal import HTTPMessages
internal import StrictJSON

/// kubectl's protocol for credential plugins (`client.authentication.k8s.io`, versions v1 and v1beta1): kubectl describes
/// itself and the cluster in a variable as JSON, and reads the token as JSON.
public struct KubectlCredential: Sendable, Equatable {
    /// The variable that kubectl sets for the plugin.
    public static let variable = "KUBERNETES_EXEC_INFO"
    /// The most bytes of the variable that are read. The kernel allows no longer one.
    public static let maxInput = 131_072

    private static let group = "client.authentication.k8s.io/"

    /// The lookup of the cluster's server; nil if kubectl does not name it (`provideClusterInfo`).
    public let request: AdapterRequest?
    /// True if kubectl lets the plugin wait for the user.
    public let isInteractive: Bool
    /// `v1` or `v1beta1`. The answer has the same.
    let version: String

    /// Reads the variable.
    ///
    /// - Throws: for what kubectl does not write: text that is not JSON, a member twice, another kind of object or
    ///   version, a member of another type, a server that is no URL.
    public init(reading input: [UInt8]) throws(AdapterFailure) {
        guard input.count <= KubectlCredential.maxInput else {
            throw AdapterFailure("\(KubectlCredential.variable) is too long.")
        }
        let json: JSON
        do throws(JSONError) {
            json = try JSON(parsing: input)
        } catch {
            throw AdapterFailure("\(KubectlCredential.variable) is not valid JSON: \(error).")
        }
        guard json["kind"] == "ExecCredential", let name = json["apiVersion"]?.string,
            let version = ["v1", "v1beta1"].first(where: { KubectlCredential.group + $0 == name })
        else {
            throw AdapterFailure(
                "\(KubectlCredential.variable) is no ExecCredential of version v1 or v1beta1 of "
                    + "client.authentication.k8s.io.")
        }
        self.version = version
        guard let spec = json["spec"]?.object else { throw KubectlCredential.wrong("spec") }
        switch spec["interactive"] {
        case .bool(let isInteractive): self.isInteractive = isInteractive
        // kubectl 1.20 and 1.21, which know v1beta1 only, do not say it.
        case nil where version == "v1beta1": isInteractive = false
        default: throw KubectlCredential.wrong("spec.interactive")
        }
        switch spec["cluster"] {
        case nil: request = nil
        case .object(let cluster):
            guard let server = cluster["server"]?.string, let url = try? WebURL(parsing: server),
                ["https", "http"].contains(url.scheme), url.host?.isEmpty == false, url.query == nil,
                url.fragment == nil
            else { throw KubectlCredential.wrong("spec.cluster.server") }
            request = AdapterRequest(url: server, username: nil)
        default: throw KubectlCredential.wrong("spec.cluster")
        }
    }

    private static func wrong(_ member: String) -> AdapterFailure {
        AdapterFailure("In \(variable) the member \(member) is missing or not valid.")
    }

    /// The answer with a token: an `ExecCredential` with a status.
    ///
    /// - Throws: for a token that cannot be in a header field, and for one that the configuration wants in another field
    ///   than `Authorization: Bearer`. kubectl knows no other.
    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        let token = try credential.bearer(for: "kubectl")
        var status = JSONObject()
        status["expirationTimestamp"] = credential.expiresAt.map { .string(Timestamp.text(of: $0)) }
        status["token"] = .string(token)
        let answer: JSON = [
            "apiVersion": .string(KubectlCredential.group + version), "kind": "ExecCredential",
            "status": .object(status),
        ]
        return answer.serialized() + [UInt8(ascii: "\n")]
    }
}
