public import BrokerCore
public import SessionVault

/// Why a file has no current token. The broker passes this value on without interpreting it.
public indirect enum FileReason: KindReason, Error, Equatable {
    /// Other users can write to the folder or to a folder above it.
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
    /// Ringback did not write what is at the path, and leaves it there.
    case left(FileReason)
    /// The token has scopes that the configuration does not name for the file.
    case tooMuchScope(AccountName, excess: [String])
    /// The token has characters, such as a line break, that would change the meaning of the line.
    case tokenCharacters(AccountName)
    case typeCharacters(AccountName)
    /// The line cannot be made; `cause` is the error text of the code that makes it.
    case line(cause: String)
    case recordNotWritten(VaultError)
    /// The session has no valid ID token, and refreshes bring none.
    case noIDToken(AccountName)
    case notRenewable(AccountName)
}

extension Reason {
    static func file(_ reason: FileReason) -> Reason { .kind(KindFact(reason)) }
}
