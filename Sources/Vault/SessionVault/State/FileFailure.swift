/// A failed system call on a file.
public struct FileFailure: Error, Sendable, Equatable {
    /// What was tried.
    public enum Action: String, Sendable, CaseIterable {
        case make, makeRoom, move, open, read, remove, setAside, sync, use, write
    }

    public let action: Action
    public let path: String
    /// The `errno`.
    public let code: Int32
    /// True if the change was made but may be undone by a power failure, so both states are possible.
    public let isInDoubt: Bool

    public init(action: Action, path: String, code: Int32, isInDoubt: Bool = false) {
        self.action = action
        self.path = path
        self.code = code
        self.isInDoubt = isInDoubt
    }
}
