import Glibc
import RingbackBase
import SessionVault
import Testing

@testable import APIServer
@testable import BrokerCore

/// The vault knows facts. What a user reads of them is here, letter by letter.
@Suite struct `The sentence of the vault's` {
    private static let full = FileFailure(action: .write, path: "/s/a", code: ENOSPC)
    private static let fullSentence =
        "Cannot write /s/a: No space left on device; free some space on that file system."

    /// With every kind of value that a reason can have.
    private static let reasons: [VaultReason] = [
        .file(full), .folderNotOpened(path: "/s/vault"), .newer(path: "/s/a", version: 2),
        .tooLong(path: "/s/a", limit: 64), .damagedKeyFile(path: "/s/vault.key", folder: "/s/vault", .tooShort),
        .otherKey(.secretService, path: "/s/vault.key", folder: "/s/vault"),
        .keySourceDiffers(recorded: .keyFile, configured: .secretService), .keySourceMissing(.keyFile),
        .keptBy(.secretService, .keyringLocked), .noSuchKeeper(.keyFile), .notTaken(.secretService, .keyringLocked),
        .key(.file(full)), .keyFileMissing(path: "/s/vault.key", count: 3, folder: "/s/vault"),
        .foreignSessions(path: "/s/vault.key", count: 3, folder: "/s/vault"), .keyStays(.noSuchKeeper(.keyFile)),
        .notAnAccountName("../a"), .bindingTooLong(account: "work"), .tooLarge(.session, account: "work"),
        .otherVaultsKey(path: "/s/a"), .damaged(path: "/s/a", .changed, kind: .session, place: "/s/a.damaged-1"),
        .damagedInPlace(path: "/s/a", .changed, full), .databaseAway(.foreignServer(uid: 7)),
        .databaseRefused(.otherSchema(9)), .key(.missing(path: "/k/a.key")), .key(.noKey(path: "/k/a.key")),
        .key(.notAnIdentifier("../a")), .key(.notADirectory(path: "/k")), .key(.openToOthers(path: "/k")),
        .key(.insideState(path: "/k")), .key(.keyringNotAsked(cause: "cancelled")),
        .key(.noKeyring(cause: "there is no session bus")), .key(.keyringFailed(cause: "a cause")),
    ]

    @Test(arguments: reasons) func `reason names its paths, names and numbers`(reason: VaultReason) {
        for value in Self.values(of: reason) { #expect(reason.sentence.contains(value), "\(reason.sentence)") }
        for error in [
            VaultError.locked(reason), .unwritable(reason), .damaged(reason), .newer(reason), .refused(reason),
        ] {
            #expect(Reason.vault(error).sentence == reason.sentence)
        }
    }

    private static func values(of value: Any) -> [String] {
        switch value {
        case let text as String: [text]
        case let number as any FixedWidthInteger: ["\(number)"]
        case let choice as KeySourceChoice: [choice.rawValue]
        // Of a failed call the error's text is told, not its number.
        case let failure as FileFailure: [failure.path]
        default: Mirror(reflecting: value).children.flatMap { values(of: $0.value) }
        }
    }

    @Test(
        arguments: [
            (
                .damagedKeyFile(path: "/s/vault.key", folder: "/s/vault", .tooShort),
                "/s/vault.key is damaged: it is too short. It was not changed. Restore it from a backup. Without this "
                    + "file the sealed sessions cannot be read. To give them up, move /s/vault.key and /s/vault away."
            ),
            (
                .keptBy(.secretService, .keyringLocked),
                "The vault's key is kept by secret-service. The keyring is locked. Unlock it, and this goes on by "
                    + "itself."
            ),
            (
                .keyStays(.noSuchKeeper(.keyFile)),
                "key-file is not available here to keep the vault's key. The vault's key stays where it was."
            ),
            (.tooLarge(.registration, account: "work"), "The registration of work is larger than 1 MiB."),
            (
                .damaged(path: "/s/a", .changed, kind: .session, place: "/s/a.damaged-1"),
                "/s/a cannot be read: its content was changed. It was renamed to /s/a.damaged-1; sign in again."
            ),
            (
                .damaged(path: "/s/a", .changed, kind: .people, place: "/s/a.damaged-1"),
                "/s/a cannot be read: its content was changed. It was renamed to /s/a.damaged-1; it is written again."
            ),
            (
                .damagedInPlace(path: "/s/a", .changed, full),
                "/s/a cannot be read: its content was changed. " + fullSentence
            ),
            (.databaseAway(.timedOut), "The vault's database cannot be reached: It did not answer in time."),
            (
                .key(.noCredentials),
                "The daemon was started without credentials (CREDENTIALS_DIRECTORY is not set); start it as a unit with "
                    + "LoadCredential=ringback-vault-key."
            ),
        ] as [(VaultReason, String)])
    func `reason joins the sentences of its parts`(reason: VaultReason, sentence: String) {
        #expect(reason.sentence == sentence)
    }

    @Test(
        arguments: zip(
            FileFailure.Action.allCases,
            ["make", "make room in", "move", "open", "read", "remove", "set aside", "sync", "use", "write"]))
    func `failed call`(action: FileFailure.Action, verb: String) {
        #expect(
            FileFailure(action: action, path: "/s/a", code: EINTR).sentence
                == "Cannot \(verb) /s/a: Interrupted system call; try again.")
    }

    @Test(
        arguments: [
            (ENOSPC, "No space left on device; free some space on that file system"),
            (EDQUOT, "Disk quota exceeded; free some space, or have your quota raised"),
            (EROFS, "Read-only file system; make that file system writable, or choose another state directory"),
            (EACCES, "Permission denied; it must be yours, directories with mode 0700 and files with 0600"),
            (EPERM, "Operation not permitted; it must be yours, directories with mode 0700 and files with 0600"),
            (EIO, "Input/output error; the disk reports errors: look into the kernel's log and save your data"),
            (EMFILE, "Too many open files; close programs that hold many files, or raise the limit"),
            (ENFILE, "Too many open files in system; close programs that hold many files, or raise the limit"),
            (
                ENOENT,
                "No such file or directory; it existed before: restore it if it was moved, and restart the daemon"
            ),
            (ESTALE, "Stale file handle; it existed before: restore it if it was moved, and restart the daemon"),
            (
                ELOOP,
                "Too many levels of symbolic links; a file of another kind is in its place: move it away"
            ),
            (EISDIR, "Is a directory; a file of another kind is in its place: move it away"),
            (ENOTDIR, "Not a directory; a file of another kind is in its place: move it away"),
        ] as [(Int32, String)])
    func `advice about a failed call`(code: Int32, words: String) {
        #expect(FileFailure(action: .write, path: "/s/a", code: code).sentence == "Cannot write /s/a: \(words).")
    }

    @Test func `change that a power failure may undo`() {
        #expect(
            FileFailure(action: .write, path: "/s/a", code: EIO, isInDoubt: true).sentence
                == "Cannot write /s/a: Input/output error (it is written, but may not survive a power cut); the disk "
                + "reports errors: look into the kernel's log and save your data.")
    }

    @Test func `protection by memory says why there is no vault on disk`() {
        let words = "nothing is written to disk; sessions end with the daemon"
        #expect(VaultProtection.memory(reason: nil).sentence == words)
        #expect(
            VaultProtection.memory(reason: .noKeyDirectory).sentence
                == words + ". No vault could be made: There is no directory for a key file.")
        #expect(VaultProtection.keyFile(directory: "/k").sentence.contains("/k "))
    }

    @Test func `refusal of a wrong passphrase`() {
        #expect(VaultError.wrongPassphrase.sentence == "The passphrase does not open the vault.")
    }
}
