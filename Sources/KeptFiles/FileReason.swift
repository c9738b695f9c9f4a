public import BrokerCore
public import SessionVault

/// Why a file is not kept, as a fact. The broker carries it and does not read it.
public indirect enum FileReason: KindReason, Error, Equatable {
    /// The folder or one above it may be changed by others.
    case folderOpenToOthers(path: String, DirectoryTrust.Failure)
    case folderNotOpened(path: String, folder: String, errno: Int32)
    /// The folder is not on a file system in memory, and the configuration does not allow that.
    case onDisk(path: String)
    case notRead(path: String, errno: Int32)
    case notWritten(path: String, errno: Int32)
    case notRemoved(path: String, errno: Int32)
    case symbolicLink(path: String)
    case notRegular(path: String)
    case ofOtherUser(path: String)
    case ofOtherProgram(path: String)
    /// Something that is not ours is at the path, and stays there.
    case left(FileReason)
    /// The token has scopes that the configuration does not name for the file.
    case tooMuchScope(AccountName, excess: [String])
    /// The token has characters that would add something to a line.
    case tokenCharacters(AccountName)
    case typeCharacters(AccountName)
    /// The line cannot be written; the text of the part that writes it.
    case line(cause: String)
    case recordNotWritten(VaultError)
    /// The session has no valid ID token, and refreshes bring none.
    case noIDToken(AccountName)
    case notRenewable(AccountName)
}

extension Reason {
    static func file(_ reason: FileReason) -> Reason { .kind(KindFact(reason)) }
}
