internal import RingbackBase

/// kubectl's protocol for credential plugins (`client.authentication.k8s.io`, versions v1 and v1beta1): kubectl describes
/// itself and the cluster in a variable as JSON, and reads the token as JSON.
public struct KubectlCredential: Sendable, Equatable {
    /// The variable that kubectl sets for the plugin.
    public static let variable = "KUBERNETES_EXEC_INFO"
    /// In bytes. The kernel allows no longer variable.
    public static let maxInput = 131_072

    private static let group = "client.authentication.k8s.io/"

    /// The lookup of the cluster's server, with the cluster's settings; nil if kubectl does not name it
    /// (`provideClusterInfo`).
    public let request: AdapterRequest?
    /// The file of a certificate authority that ``request`` lacks; nil for kubectl itself, which reads the file.
    public let authorityFile: String?
    /// True if kubectl lets the plugin wait for the user.
    public let isInteractive: Bool
    /// `v1` or `v1beta1`. The answer has the same.
    let version: String

    /// Without the variable, as some programs run plugins that need no cluster.
    public init() { (request, authorityFile, isInteractive, version) = (nil, nil, false, "v1") }

    /// Reads the variable. A member that is null is absent: programs other than kubectl write such ones. Throws for
    /// what they do not write: text that is not JSON, a member twice, another kind of object or version, a member of
    /// another type, a server that is no URL, and for a setting of the cluster that is not known.
    public init(reading input: [UInt8]) throws(AdapterFailure) {
        // kube-rs writes null, and the client for .NET a plural.
        let kinds: [JSON?] = ["ExecCredential", "ExecCredentials", .null, nil]
        let json = try AdapterRequest.json(input, atMost: KubectlCredential.maxInput, named: KubectlCredential.variable)
        guard kinds.contains(json["kind"]), let name = json["apiVersion"]?.string,
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
        // kubectl 1.20 and 1.21 do not say it.
        case nil, .null: isInteractive = false
        default: throw KubectlCredential.wrong("spec.interactive")
        }
        switch spec["cluster"] {
        case nil, .null: (request, authorityFile) = (nil, nil)
        case .object(let cluster):
            guard let server = cluster["server"]?.string, let url = WebURL.server(server), url.query == nil,
                url.fragment == nil
            else { throw KubectlCredential.wrong("spec.cluster.server") }
            let found = try KubectlCredential.settings(of: cluster)
            request = AdapterRequest(url: server, username: nil, settings: found.settings)
            authorityFile = found.authorityFile
        default: throw KubectlCredential.wrong("spec.cluster")
        }
    }

    /// What a cluster may have that changes nothing of where the token goes.
    private static let harmless: Set<String> = ["server", "config", "extensions", "disable-compression"]

    /// How the tool connects to a cluster, as far as the origin has to allow it.
    private static func settings(
        of cluster: JSONObject
    ) throws(AdapterFailure) -> (settings: ConnectionSettings, authorityFile: String?) {
        var (settings, file, hasData) = (ConnectionSettings(), String?.none, false)
        for member in cluster.members where !harmless.contains(member.name) {
            let (name, value) = (member.name, member.value)
            // Not set.
            if [.null, "", false].contains(value) { continue }
            switch name {
            case "insecure-skip-tls-verify" where value == true: settings.skipsVerification = true
            case "tls-server-name": settings.serverNames = [try text(value, name, ConnectionSettings.serverName)]
            case "proxy-url": settings.proxies = [try text(value, name, ConnectionSettings.proxy)]
            case "certificate-authority-data":
                let text = value.string?.filter { !$0.isWhitespace }
                guard let bytes = text.flatMap({ Base64.decode($0) }) else { throw wrong("spec.cluster.\(name)") }
                (settings.authorities, hasData) = ([authority(bytes)], true)
            // The Python client gives the kubeconfig's member as it is.
            case "certificate-authority":
                guard let text = value.string else { throw wrong("spec.cluster.\(name)") }
                file = text
            case "insecure-skip-tls-verify": throw wrong("spec.cluster.\(name)")
            default:
                throw AdapterFailure(
                    "\(variable) has a setting of the cluster that this version does not know. It may let somebody else "
                        + "read the token, so no token is given.")
            }
        }
        // As in kubectl, the data is taken where both are there.
        return (settings, hasData ? nil : file)
    }

    private static func text(
        _ value: JSON, _ name: String, _ normalized: (String) -> String?
    ) throws(AdapterFailure) -> String {
        guard let text = value.string.flatMap(normalized) else { throw wrong("spec.cluster.\(name)") }
        return text
    }

    /// How the certificate authorities of a PEM text are named in an origin.
    public static func authority(_ bytes: [UInt8]) -> String { SHA256.hex(bytes) }

    /// The lookup with the certificate authorities that ``authorityFile`` names.
    public func request(trusting authorities: [UInt8]) -> AdapterRequest? {
        guard let request else { return nil }
        var settings = request.settings
        settings.authorities = [KubectlCredential.authority(authorities)]
        return AdapterRequest(url: request.url, username: request.username, settings: settings)
    }

    private static func wrong(_ member: String) -> AdapterFailure {
        AdapterFailure("In \(variable) the member \(member) is missing or not valid.")
    }

    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        let token = try credential.bearer(for: "kubectl")
        let status: JSONObject = ["expirationTimestamp": credential.expiresAt.map(Timestamp.text), "token": token]
        let answer: JSONObject = [
            "apiVersion": KubectlCredential.group + version, "kind": "ExecCredential", "status": status,
        ]
        return answer.line
    }
}
