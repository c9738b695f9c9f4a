public import HTTPMessages

/// The list of credential providers in cargo's `config.toml`: `registry.global-credential-providers`. cargo asks the
/// last one first, and the one before it if the registry is none of its own.
public struct CargoConfiguration: Sendable, Equatable {
    public static let section = "registry"
    public static let key = "global-credential-providers"
    private static let verb = "cargo-credential"
    private static let link = "cargo-credential-ringback"
    /// What cargo does without the key.
    private static let usual = "cargo:token"

    private var file: SectionConfiguration

    /// - Parameter bytes: the file's; nil if there is no file.
    /// - Returns: nil for a list in another form than an array of strings below `[registry]`.
    public init?(reading bytes: [UInt8]?) {
        guard let file = SectionConfiguration(reading: bytes), !file.isDotted(CargoConfiguration.section) else {
            return nil
        }
        self.file = file
        let isListed = file.value(of: CargoConfiguration.key, in: CargoConfiguration.section) != nil
        guard !isListed || list != nil else { return nil }
    }

    public var bytes: [UInt8] { file.bytes }

    private var list: TOMLStringArray? {
        file.start(of: CargoConfiguration.key, in: CargoConfiguration.section).flatMap {
            TOMLStringArray(in: file.bytes, from: $0)
        }
    }

    /// The providers that are Ringback, whoever wrote them.
    public var ours: [String] { list?.texts.compactMap(\.self).filter(CargoConfiguration.isOurs) ?? [] }

    /// True if cargo asks another provider before Ringback.
    public var isOtherFirst: Bool { !ours.isEmpty && list?.texts.last.map { $0.map(Self.isOurs) ?? false } == false }

    public var hasSection: Bool { file.has(CargoConfiguration.section) }

    /// The provider that runs a program; nil for a path that cargo would split, or that TOML would read as something else.
    public static func provider(running program: String) -> String? {
        let isPlain = program.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F && !"\"\\".utf8.contains($0) }
        return isPlain ? "\(program) \(verb)" : nil
    }

    /// Adds a provider behind the others, so that cargo asks it first.
    public mutating func add(_ provider: String) {
        guard let list else {
            return file.add(CargoConfiguration.line(provider), to: CargoConfiguration.section)
        }
        file.bytes = list.adding(provider)
    }

    /// Removes a provider.
    ///
    /// - Parameter isSectionOurs: the section was added with it.
    public mutating func remove(_ provider: String, isSectionOurs: Bool) {
        let line = CargoConfiguration.line(provider)
        if file.has(line, in: CargoConfiguration.section) {
            file.remove(line, from: CargoConfiguration.section, isSectionOurs: isSectionOurs)
        } else if let bytes = list?.removing(provider) {
            file.bytes = bytes
        }
    }

    /// True for an origin that cargo can ask for.
    public static func isUsable(_ rule: OriginRule) -> Bool { rule.pattern.scheme == "https" && rule.username == nil }

    private static func line(_ provider: String) -> String { "\(key) = [\"\(usual)\", \"\(provider)\"]" }

    private static func isOurs(_ provider: String) -> Bool {
        let words = provider.split(separator: " ")
        let name = words.first?.split(separator: "/").last
        return words.count == 1 && name == link[...] || words.count == 2 && name == "ringback" && words[1] == verb[...]
    }
}
