public import RingbackBase

/// The value of go's `GOAUTH`: commands with semicolons between them, which go runs in this order.
public struct GoConfiguration: Sendable, Equatable {
    public static let variable = "GOAUTH"
    private static let verb = "goauth"

    private let commands: [String]

    /// - Parameter value: the output of `go env GOAUTH`.
    public init(value: some Collection<UInt8>) {
        commands = String(decoding: value, as: UTF8.self).split(separator: ";").map { command in
            command.split { $0.isWhitespace }.joined(separator: " ")
        }.filter { !$0.isEmpty }
    }

    /// True if go asks Ringback, whoever wrote it.
    public var isAsked: Bool {
        commands.contains { $0 == "ringback \(GoConfiguration.verb)" || GoConfiguration.isWritten($0) }
    }

    public var isOff: Bool { commands == ["off"] }

    /// The value with Ringback after the other commands; nil for a path that go would split.
    public func adding(_ program: String) -> String? {
        guard !program.contains(where: { $0.isWhitespace || "\"';".contains($0) }) else { return nil }
        let others = commands.filter { !GoConfiguration.isWritten($0) }
        return (others + ["\(program) \(GoConfiguration.verb)"]).joined(separator: "; ")
    }

    /// The value without what ``adding(_:)`` added.
    public enum Removal: Sendable, Equatable {
        /// There is nothing of ours in it.
        case nothing
        /// What is left is what go does without the variable.
        case unset
        case set(String)
    }

    public var removal: Removal {
        let others = commands.filter { !GoConfiguration.isWritten($0) }
        guard others != commands else { return .nothing }
        return others.isEmpty || others == ["netrc"] ? .unset : .set(others.joined(separator: "; "))
    }

    public static func isUsable(_ rule: OriginRule) -> Bool { rule.pattern.scheme == "https" && rule.username == nil }

    /// True for a command that ``adding(_:)`` makes of an absolute path of Ringback.
    private static func isWritten(_ command: String) -> Bool {
        command.hasPrefix("/") && command.hasSuffix("/ringback \(verb)")
    }
}
