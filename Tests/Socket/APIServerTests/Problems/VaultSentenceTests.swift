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

    @Test(
        arguments: [
            (.locked, "The vault is locked."),
            (.notOpened, "The vault has not been opened yet."),
            (.lockedByUser, "A user locked the vault."),
            (.needsPassphrase, "The vault is locked with a passphrase."),
            (
                .noPassphraseYet,
                "The vault has no passphrase yet: the next one that is given becomes its passphrase."
            ),
            (.emptyPassphrase, "The passphrase is empty."),
            (.cryptography, "The cryptography library failed (out of memory?); try again."),
            (.file(full), fullSentence),
            (.folderNotOpened(path: "/s/vault"), "Cannot open /s/vault."),
            (
                .newer(path: "/s/a", version: 2),
                "/s/a was written by a newer ringbackd (format 2) and was not changed. Update ringbackd."
            ),
            (.tooLong(path: "/s/a", limit: 64), "/s/a is longer than 64 bytes, so Ringback did not write it."),
            (
                .damagedKeyFile(path: "/s/vault.key", folder: "/s/vault", .tooShort),
                "/s/vault.key is damaged: it is too short. It was not changed. Restore it from a backup. Without this "
                    + "file the sealed sessions cannot be read. To give them up, move /s/vault.key and /s/vault away."
            ),
            (
                .otherKey(.secretService, path: "/s/vault.key", folder: "/s/vault"),
                "The key that secret-service gives is not the one that /s/vault.key was made with. Restore the right "
                    + "key. To give up the sealed sessions, move /s/vault.key and /s/vault away."
            ),
            (
                .keySourceDiffers(recorded: .keyFile, configured: .secretService),
                "The vault's key is kept by key-file, and the configuration says key_source = \"secret-service\"."
            ),
            (
                .keySourceMissing(.keyFile),
                "The vault's key is kept by key-file, which is not available here."
            ),
            (
                .notUnwrapped,
                "The vault's key cannot be unwrapped: the cryptography library failed; try again."
            ),
            (
                .keptBy(.secretService, .keyringLocked),
                "The vault's key is kept by secret-service. The keyring is locked. Unlock it, and this goes on by "
                    + "itself."
            ),
            (.noSuchKeeper(.keyFile), "key-file is not available here to keep the vault's key."),
            (
                .notTaken(.secretService, .keyringLocked),
                "secret-service cannot keep the vault's key. The keyring is locked. Unlock it, and this goes on by "
                    + "itself."
            ),
            (.key(.file(full)), fullSentence),
            (
                .keyFileMissing(path: "/s/vault.key", count: 3, folder: "/s/vault"),
                "/s/vault.key is missing, and 3 sealed sessions in /s/vault need it. Restore it from a backup, or move "
                    + "the files away and sign in again."
            ),
            (
                .foreignSessions(path: "/s/vault.key", count: 3, folder: "/s/vault"),
                "/s/vault.key is not the one that the 3 sealed sessions in /s/vault were made with. Restore the right "
                    + "one, or move those files away and sign in again."
            ),
            (.noKeyDirectory, "There is no directory for a key file."),
            (
                .keyStays(.noSuchKeeper(.keyFile)),
                "key-file is not available here to keep the vault's key. The vault's key stays where it was."
            ),
            (
                .notIntoMemory,
                "A vault on disk cannot be changed into one in memory. Set key_source = \"memory\" and restart; the "
                    + "sealed sessions stay where they are."
            ),
            (.inMemory, "The sessions are in memory only and would be lost by locking."),
            (.noKeyInMemory, "The sessions are in memory only: there is no key. Set key_source and restart."),
            (.notAnAccountName("../a"), "\"../a\" is no account's name."),
            (.bindingTooLong(account: "work"), "What work is bound to is longer than 8,192 bytes."),
            (.tooLarge(.session, account: "work"), "The session of work is larger than 1 MiB."),
            (.tooLarge(.registration, account: "work"), "The registration of work is larger than 1 MiB."),
            (.tooLarge(.people, account: "work"), "The people of work is larger than 1 MiB."),
            (.onlySessionsRetire, "Only a session can be retired."),
            (
                .otherVaultsKey(path: "/s/a"),
                "/s/a was sealed with another vault's key and was left as it is. Restore the vault.key that belongs to "
                    + "it, or move the file away and sign in again."
            ),
            (
                .damaged(path: "/s/a", .changed, kind: .session, place: "/s/a.damaged-1"),
                "/s/a cannot be read: its content was changed. It was renamed to /s/a.damaged-1; sign in again."
            ),
            (
                .damaged(path: "/s/a", .changed, kind: .registration, place: "/s/a.damaged-1"),
                "/s/a cannot be read: its content was changed. It was renamed to /s/a.damaged-1; register again."
            ),
            (
                .damaged(path: "/s/a", .changed, kind: .people, place: "/s/a.damaged-1"),
                "/s/a cannot be read: its content was changed. It was renamed to /s/a.damaged-1; it is written again."
            ),
            (
                .damagedInPlace(path: "/s/a", .changed, full),
                "/s/a cannot be read: its content was changed. " + fullSentence
            ),
        ] as [(VaultReason, String)])
    func `reason`(reason: VaultReason, sentence: String) {
        #expect(reason.sentence == sentence)
        for error in [
            VaultError.locked(reason), .unwritable(reason), .damaged(reason), .newer(reason), .refused(reason),
        ] {
            #expect(Reason.vault(error).sentence == sentence)
        }
    }

    @Test(
        arguments: [
            (.cryptography, "The cryptography library failed (out of memory?); try again."),
            (.file(full), fullSentence),
            (.missing(path: "/k/a.key"), "/k/a.key is missing. Restore it."),
            (.noKey(path: "/k/a.key"), "/k/a.key holds no key; restore it from a backup."),
            (.notAnIdentifier("../a"), "\"../a\" is no key's identifier."),
            (
                .notADirectory(path: "/k"),
                "/k is a symbolic link or not a directory. Set key_directory to a real directory."
            ),
            (.openToOthers(path: "/k"), "/k must be yours and closed to others (mode 0700)."),
            (
                .insideState(path: "/k"),
                "/k is inside the state directory, so a copy of that directory would contain the key. Move it out."
            ),
            (
                .invalidParameters,
                "The parameters in vault.key are not valid for a passphrase. Restore the file from a backup."
            ),
            (
                .outOfMemory,
                "There was not enough memory for the passphrase (128 MiB); close something, try again."
            ),
            (
                .noCredentials,
                "The daemon was started without credentials (CREDENTIALS_DIRECTORY is not set); start it as a unit with "
                    + "LoadCredential=ringback-vault-key."
            ),
            (.noCredential, "The unit has no credential ringback-vault-key; give it one with LoadCredential=."),
            (
                .otherCredential,
                "The credential ringback-vault-key is not the one that the vault was sealed with. Give the unit the "
                    + "right one and restart it."
            ),
            (
                .credentialTooShort,
                "The credential ringback-vault-key is shorter than 32 bytes; give the unit a random one."
            ),
            (.credentialTooLarge, "The credential ringback-vault-key is larger than 1 MiB."),
            (.keyringNotAsked(cause: "cancelled"), "The keyring could not be asked: cancelled."),
            (.noKeyring(cause: "there is no session bus"), "The keyring is not there: there is no session bus."),
            (.notInKeyring, "The keyring has no key for this vault."),
            (.keyringLocked, "The keyring is locked. Unlock it, and this goes on by itself."),
            (.keyringFailed(cause: "a cause"), "The keyring failed: a cause."),
            (.keyringChangedKey, "The keyring did not return the key unchanged."),
            (.notAKeyInKeyring, "The keyring's item for the vault is not a key."),
        ] as [(KeyReason, String)])
    func `key source`(reason: KeyReason, sentence: String) {
        #expect(reason.sentence == sentence)
    }

    @Test(
        arguments: [
            (.tooShort, "it is too short"), (.otherKind, "it is not a file of this kind"),
            (.invalidVersion, "its version number is invalid"), (.invalidLengths, "its lengths do not fit"),
            (.changed, "its content was changed"), (.invalidHeader, "its header is no JSON object"),
            (.otherAccount, "it belongs to another account"), (.noKeySource, "it names no key source"),
            (.noKeyName, "it names no key"), (.noParameters, "it has no parameters"), (.noKey, "it holds no key"),
        ] as [(FileDamage, String)])
    func `damaged file`(damage: FileDamage, words: String) {
        #expect(damage.sentence == words)
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

    @Test(
        arguments: [
            (.notOpened, "nothing is readable until it is opened"),
            (.unknown, ""),
            (
                .passphrase,
                "nobody reads the sealed sessions without the passphrase while the vault is locked; the protection is "
                    + "as strong as the passphrase is hard to guess"
            ),
            (
                .secretService,
                "nobody reads the sealed sessions without your keyring's password while the keyring is locked; programs "
                    + "of yours can read the key while it is unlocked"
            ),
            (
                .systemdCredential,
                "a copy of the state directory alone opens nothing; the key is as safe as the credential that systemd "
                    + "holds, bound to this machine where it is an encrypted one"
            ),
            (
                .keyFile(directory: "/k"),
                "a copy of the state directory alone opens nothing; whoever can read your files can read the key in /k "
                    + "as well"
            ),
            (.memory(reason: nil), "nothing is written to disk; sessions end with the daemon"),
            (
                .memory(reason: .noKeyDirectory),
                "nothing is written to disk; sessions end with the daemon. No vault could be made: There is no "
                    + "directory for a key file."
            ),
        ] as [(VaultProtection, String)])
    func `protection`(protection: VaultProtection, words: String) {
        #expect(protection.sentence == words)
    }

    @Test func `refusal of a wrong passphrase`() {
        #expect(VaultError.wrongPassphrase.sentence == "The passphrase does not open the vault.")
    }
}
