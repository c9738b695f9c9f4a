/// Whether programs of the user may have an account's tokens: `consent` of an account.
public enum ConsentMode: String, Sendable, CaseIterable {
    case allow
    /// Like `allow`; the first use by a program is a notice.
    case notify
    case ask, deny
}

/// A program as Ringback names it to the user: in `/v1/peer`, in the audit log and in a question. It is what the file of a
/// process says, not what runs in the process: advice, and no boundary.
public struct ProgramIdentity: Sendable, Hashable {
    /// Its path; nil if the process has ended, or the program was not found.
    public var executable: String?
    public var unit: String?
    /// True if the kernel proves which process connected, and it still ran this file.
    public var isVerified: Bool
    /// True if the file and the folders above it belong to root, and nobody else can write to them.
    public var isRootOwned: Bool

    public init(executable: String?, unit: String? = nil, isVerified: Bool = false, isRootOwned: Bool = false) {
        self.executable = executable
        self.unit = unit
        self.isVerified = isVerified
        self.isRootOwned = isRootOwned
    }

    /// On one line, in quotes; invisible characters are escapes. Nil if the program is not known.
    public var quotedPath: String? { executable.map { JSON.string($0).visibleText } }

    public var text: String {
        guard let quotedPath else { return "an unknown program" }
        return isRootOwned ? quotedPath : "\(quotedPath) (this file can be changed by you)"
    }
}

/// Where a process belongs: what is remembered of its program ends with it, and no answer about the program comes from it.
public struct ProgramOrigin: Sendable, Hashable {
    /// The control group of an application, a terminal or a service; nil if it has none of its own.
    public var group: String?
    public var session: String?
    /// The session is that of a terminal whose emulator is in the same group: the group has other terminals, too.
    public var isOneTerminal: Bool
    /// The program's own process. For a command that was typed in a terminal emulator, which has many sessions: the shell.
    public var process: String?
    /// Of a process that answers: itself and its ancestors, as in ``process``.
    public var ancestors: Set<String> = []

    public init(
        group: String? = nil, session: String? = nil, isOneTerminal: Bool = false, process: String? = nil,
        ancestors: Set<String> = []
    ) {
        self.group = group
        self.session = session
        self.isOneTerminal = isOneTerminal
        self.process = process
        self.ancestors = ancestors
    }

    /// What a decision for the session belongs to. Nil if nothing is known of the process.
    public var scope: String? { isOneTerminal ? session ?? group : group ?? session }

    /// True for the same group, session or program, for a process that the other one started, and if nothing is known of
    /// one of them. Two terminals of an emulator do not count as the same group.
    public func isShared(with other: ProgramOrigin) -> Bool {
        guard scope != nil, other.scope != nil else { return true }
        func isSame(_ part: KeyPath<ProgramOrigin, String?>) -> Bool {
            self[keyPath: part] != nil && self[keyPath: part] == other[keyPath: part]
        }
        let areTwoTerminals = isOneTerminal && other.isOneTerminal
        return isSame(\.group) && !areTwoTerminals || isSame(\.session) || isSame(\.process)
            || other.process.map(ancestors.contains) == true
    }
}
