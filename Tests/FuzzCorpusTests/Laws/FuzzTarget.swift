// A fuzz target is a parser of outside bytes with the laws that hold for every input, not only "it does not crash". The
// fuzzer looks for an input that breaks one; the tests replay what it has kept.

public struct FuzzTarget: Sendable {
    public let name: String
    public let check: @Sendable ([UInt8]) throws -> Void

    public static let all: [FuzzTarget] = [
        FuzzTarget(name: "request", check: RequestLaw.check),
        FuzzTarget(name: "relayed", check: RelayedLaw.check),
        FuzzTarget(name: "connection", check: ConnectionLaw.check),
        FuzzTarget(name: "accept", check: AcceptLaw.check),
        FuzzTarget(name: "form", check: FormLaw.check),
        FuzzTarget(name: "page-form", check: PageFormLaw.check),
        FuzzTarget(name: "callback", check: CallbackLaw.check),
        FuzzTarget(name: "json", check: JSONLaw.check),
        FuzzTarget(name: "token-answer", check: TokenAnswerLaw.check),
        FuzzTarget(name: "metadata", check: MetadataLaw.check),
        FuzzTarget(name: "key-set", check: KeySetLaw.check),
        FuzzTarget(name: "jwt", check: SignedTokenLaw.check),
        FuzzTarget(name: "id-token", check: IDTokenLaw.check),
        FuzzTarget(name: "toml", check: TOMLLaw.check),
        FuzzTarget(name: "configuration", check: ConfigurationLaw.check),
        FuzzTarget(name: "sealed-file", check: SealedFileLaw.check),
        FuzzTarget(name: "vault-key", check: VaultKeyLaw.check),
        FuzzTarget(name: "audit", check: AuditLaw.check),
        FuzzTarget(name: "events", check: EventLaw.check),
        FuzzTarget(name: "http-answer", check: HTTPAnswerLaw.check),
        FuzzTarget(name: "userinfo", check: UserinfoLaw.check),
        FuzzTarget(name: "proof", check: ProofLaw.check),
        FuzzTarget(name: "provider-answer", check: ProviderAnswerLaw.check),
        FuzzTarget(name: "client-key", check: ClientKeyLaw.check),
        FuzzTarget(name: "redirect-uri", check: RedirectLaw.check),
        FuzzTarget(name: "resource", check: ResourceLaw.check),
        FuzzTarget(name: "lease", check: LeaseLaw.check),
        FuzzTarget(name: "deep-link", check: DeepLinkLaw.check),
        FuzzTarget(name: "desktop-file", check: DesktopFileLaw.check),
        FuzzTarget(name: "project-callback", check: ProjectCallbackLaw.check),
        FuzzTarget(name: "project-answer", check: ProjectAnswerLaw.check),
        FuzzTarget(name: "registration-answer", check: RegistrationAnswerLaw.check),
        FuzzTarget(name: "device-answer", check: DeviceAnswerLaw.check),
        FuzzTarget(name: "origin", check: OriginLaw.check),
        FuzzTarget(name: "git-credential", check: GitCredentialLaw.check),
        FuzzTarget(name: "askpass", check: AskPassLaw.check),
        FuzzTarget(name: "kubectl-credential", check: KubectlCredentialLaw.check),
        FuzzTarget(name: "docker-credential", check: DockerCredentialLaw.check),
        FuzzTarget(name: "tool-request", check: ToolRequestLaw.check),
        FuzzTarget(name: "docker-configuration", check: DockerConfigurationLaw.check),
        FuzzTarget(name: "ai-tool-list", check: AIToolListLaw.check),
        FuzzTarget(name: "oidc-token", check: OIDCTokenLaw.check),
        FuzzTarget(name: "kept-files", check: KeptFilesLaw.check),
        FuzzTarget(name: "setup", check: SetupLaw.check),
        FuzzTarget(name: "mcp-server", check: MCPServerLaw.check),
        FuzzTarget(name: "mcp-message", check: MCPMessageLaw.check),
        FuzzTarget(name: "mcp-relay", check: MCPRelayLaw.check),
        FuzzTarget(name: "mcp-tools", check: MCPToolsLaw.check),
        FuzzTarget(name: "mcp-rule", check: MCPRuleLaw.check),
        FuzzTarget(name: "accept-language", check: AcceptLanguageLaw.check),
        FuzzTarget(name: "database-url", check: DatabaseURLLaw.check),
        FuzzTarget(name: "shared-row", check: SharedRowLaw.check),
        FuzzTarget(name: "spool-entry", check: SpoolEntryLaw.check),
        FuzzTarget(name: "joining", check: JoiningLaw.check),
    ]
}

public struct LawBroken: Error, CustomStringConvertible {
    public let law: String

    public var description: String { "a law is broken: \(law)" }
}

func hold(_ law: String, _ condition: @autoclosure () throws -> Bool) throws {
    guard try condition() else { throw LawBroken(law: law) }
}

extension StringProtocol {
    /// What may stand in a header field or on a terminal: no control character, nothing beyond ASCII.
    var isPrintableASCII: Bool { utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F } }

    /// True for text of any language without line breaks, control characters and characters that change its direction.
    var isVisibleLine: Bool {
        unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: false
            default: true
            }
        }
    }
}

extension [UInt8] {
    /// The bytes before the first line break, and those after it. Inputs with a choice to make begin with it in words.
    var headLineAndRest: (line: String, rest: [UInt8]) {
        guard let end = firstIndex(of: 0x0A) else { return ("", self) }
        return (String(decoding: self[..<end], as: UTF8.self), Array(self[(end + 1)...]))
    }

    /// A response: the first line has its status and words about it, the rest is its body.
    func response(status usual: Int = 200) -> (status: Int, words: [Substring], body: [UInt8]) {
        let (line, body) = headLineAndRest
        let words = line.split(separator: " ")
        return (words.first.flatMap { Int($0) }.map { Swift.min(Swift.max($0, 200), 599) } ?? usual, words, body)
    }
}
