internal import Glibc
internal import RingbackBase
internal import SessionVault

extension VaultError: Sentence {
    var sentence: String {
        switch self {
        case .locked(let reason, _), .refused(let reason, _): reason.sentence
        case .unwritable(let reason), .damaged(let reason), .newer(let reason), .unreachable(let reason):
            reason.sentence
        case .wrongPassphrase: "The passphrase does not open the vault."
        }
    }
}

extension VaultReason: Sentence {
    var sentence: String {
        switch self {
        case .locked: "The vault is locked."
        case .notOpened: "The vault has not been opened yet."
        case .lockedByUser: "A user locked the vault."
        case .needsPassphrase: "The vault is locked with a passphrase."
        case .noPassphraseYet:
            "The vault has no passphrase yet: the next one that is given becomes its passphrase."
        case .emptyPassphrase: "The passphrase is empty."
        case .cryptography: KeyReason.cryptography.sentence
        case .file(let failure): failure.sentence
        case .folderNotOpened(let path): "Cannot open \(path)."
        case .newer(let path, let version):
            "\(path) was written by a newer ringbackd (format \(version)) and was not changed. Update ringbackd."
        case .tooLong(let path, let limit): "\(path) is longer than \(limit) bytes, so Ringback did not write it."
        case .damagedKeyFile(let path, let folder, let damage):
            "\(path) is damaged: \(damage.sentence). It was not changed. Restore it from a backup. Without this file "
                + "the sealed sessions cannot be read. To give them up, move \(path) and \(folder) away."
        case .otherKey(let source, let path, let folder):
            "The key that \(source.rawValue) gives is not the one that \(path) was made with. Restore the right key. "
                + "To give up the sealed sessions, move \(path) and \(folder) away."
        case .keySourceDiffers(let recorded, let configured):
            "The vault's key is kept by \(recorded.rawValue), and the configuration says "
                + "key_source = \"\(configured.rawValue)\"."
        case .keySourceMissing(let source):
            "The vault's key is kept by \(source.rawValue), which is not available here."
        case .notUnwrapped: "The vault's key cannot be unwrapped: the cryptography library failed; try again."
        case .keptBy(let source, let reason): "The vault's key is kept by \(source.rawValue). \(reason.sentence)"
        case .noSuchKeeper(let source): "\(source.rawValue) is not available here to keep the vault's key."
        case .notTaken(let source, let reason): "\(source.rawValue) cannot keep the vault's key. \(reason.sentence)"
        case .key(let reason): reason.sentence
        case .keyFileMissing(let path, let count, let folder):
            "\(path) is missing, and \(count) sealed sessions in \(folder) need it. Restore it from a backup, or move "
                + "the files away and sign in again."
        case .foreignSessions(let path, let count, let folder):
            "\(path) is not the one that the \(count) sealed sessions in \(folder) were made with. Restore the right "
                + "one, or move those files away and sign in again."
        case .noKeyDirectory: "There is no directory for a key file."
        case .keyStays(let reason): "\(reason.sentence) The vault's key stays where it was."
        case .notIntoMemory:
            "A vault on disk cannot be changed into one in memory. Set key_source = \"memory\" and restart; the sealed "
                + "sessions stay where they are."
        case .inMemory: "The sessions are in memory only and would be lost by locking."
        case .noKeyInMemory: "The sessions are in memory only: there is no key. Set key_source and restart."
        case .notAnAccountName(let name): "\"\(name)\" is no account's name."
        case .bindingTooLong(let account): "What \(account) is bound to is longer than 8,192 bytes."
        case .tooLarge(let kind, let account): "The \(kind.word) of \(account) is larger than 1 MiB."
        case .onlySessionsRetire: "Only a session can be retired."
        case .otherVaultsKey(let path):
            "\(path) was sealed with another vault's key and was left as it is. Restore the vault.key that belongs to "
                + "it, or move the file away and sign in again."
        case .databaseAway(let reason): "The vault's database cannot be reached: \(reason.sentence)"
        case .databaseRefused(let reason): "The vault's database did not do what was asked: \(reason.sentence)"
        case .noHostsKey: "This host does not have the key of the vault that hosts share."
        case .noHost:
            "The role with which this host connects to the vault's database belongs to no host that has joined."
        case .joiningUnreadable: "The record of how this host joined the others cannot be read."
        case .heldElsewhere: "Another host is changing this at the moment."
        case .changedElsewhere: "Another host has changed this meanwhile."
        case .leaseOver: "The request was not sent, since this host's turn was over before."
        case .olderRow:
            "The vault's database has an older record than this host has seen. It was not used. If it stays so, sign in "
                + "again."
        case .foreignRow:
            "The vault's database has a record that was not sealed for this place. It was not used. If it stays so, sign in "
                + "again."
        case .damaged(let path, let damage, let kind, let place):
            "\(path) cannot be read: \(damage.sentence). It was renamed to \(place); \(kind.remedy)."
        case .damagedInPlace(let path, let damage, let failure):
            "\(path) cannot be read: \(damage.sentence). \(failure.sentence)"
        }
    }
}

extension VaultSlot.Kind {
    fileprivate var word: String {
        switch self {
        case .session: "session"
        case .registration: "registration"
        case .people: "people"
        case .provider: "provider"
        case .hostsKey: "hostskey"
        }
    }

    /// What replaces a damaged file.
    fileprivate var remedy: String {
        switch self {
        case .session: "sign in again"
        case .registration: "register again"
        case .people: "it is written again"
        case .provider: "it is learned again"
        case .hostsKey: "get the key from another host again"
        }
    }
}

extension FileDamage: Sentence {
    /// Ends a sentence, without a full stop.
    var sentence: String {
        switch self {
        case .tooShort: "it is too short"
        case .otherKind: "it is not a file of this kind"
        case .invalidVersion: "its version number is invalid"
        case .invalidLengths: "its lengths do not fit"
        case .changed: "its content was changed"
        case .invalidHeader: "its header is no JSON object"
        case .otherAccount: "it belongs to another account"
        case .noKeySource: "it names no key source"
        case .noKeyName: "it names no key"
        case .noParameters: "it has no parameters"
        case .noKey: "it holds no key"
        }
    }
}

extension VaultProtection: Sentence {
    /// Without a full stop, as it is served.
    var sentence: String {
        switch self {
        case .notOpened: "nothing is readable until it is opened"
        case .unknown: ""
        case .passphrase:
            "nobody reads the sealed sessions without the passphrase while the vault is locked; the protection is as "
                + "strong as the passphrase is hard to guess"
        case .secretService:
            "nobody reads the sealed sessions without your keyring's password while the keyring is locked; programs of "
                + "yours can read the key while it is unlocked"
        case .systemdCredential:
            "a copy of the state directory alone opens nothing; the key is as safe as the credential that systemd "
                + "holds, bound to this machine where it is an encrypted one"
        case .keyFile(let directory):
            "a copy of the state directory alone opens nothing; whoever can read your files can read the key in "
                + "\(directory) as well"
        case .memory(let reason):
            "nothing is written to disk; sessions end with the daemon"
                + (reason.map { ". No vault could be made: \($0.sentence)" } ?? "")
        }
    }
}

extension DatabaseReason: Sentence {
    var sentence: String {
        switch self {
        case .noLibrary: "libpq 14 or later is not installed."
        case .noPassword: "There is no password for it."
        case .noConnection: "No connection can be made."
        case .tls: "It has no TLS, or its certificate is not valid for its name."
        case .authentication:
            "It does not let this host's role in. If another host has removed this one, it needs a new invitation."
        case .foreignServer(let uid?):
            "The process that answers there belongs to the user with the uid \(uid), and not to root or the database. If "
                + "that is right, set store_uid = \(uid) in [vault]."
        case .foreignServer:
            "The owner of the process that answers there cannot be determined. Use TLS with sslmode=verify-full."
        case .weakAuthentication:
            "It asks for the password in clear or by MD5. Set scram-sha-256 in its pg_hba.conf, or use TLS with "
                + "sslmode=verify-full."
        case .tooMuch: "It sent more data than is accepted."
        case .timedOut: "It did not answer in time."
        case .closed: "The connection ended."
        case .readOnly: "It takes no changes at the moment."
        case .notNow: "It is starting or ending, or has no connection left."
        case .noSchema: "It has no schema of Ringback's."
        case .otherSchema(let version): "Its schema is of version \(version), which is not known here."
        case .notPermitted: "This host's role lacks a right."
        case .noRoom: "Its disk is full."
        case .refused(let state): "It refused a statement with SQLSTATE \(state)."
        case .malformed: "Its answer is not of the form that was asked for."
        case .busy: "Too much waits for it already."
        case .cancelled: "The daemon ends."
        }
    }
}

extension KeyReason: Sentence {
    private static let credential = SystemdCredentialSource.credential

    var sentence: String {
        switch self {
        case .cryptography: "The cryptography library failed (out of memory?); try again."
        case .file(let failure): failure.sentence
        case .missing(let path): "\(path) is missing. Restore it."
        case .noKey(let path): "\(path) holds no key; restore it from a backup."
        case .notAnIdentifier(let text): "\"\(text)\" is no key's identifier."
        case .notADirectory(let path):
            "\(path) is a symbolic link or not a directory. Set key_directory to a real directory."
        case .openToOthers(let path): "\(path) must be yours and closed to others (mode 0700)."
        case .insideState(let path):
            "\(path) is inside the state directory, so a copy of that directory would contain the key. Move it out."
        case .invalidParameters:
            "The parameters in vault.key are not valid for a passphrase. Restore the file from a backup."
        case .outOfMemory:
            "There was not enough memory for the passphrase (128 MiB); close something, try again."
        case .noCredentials:
            "The daemon was started without credentials (CREDENTIALS_DIRECTORY is not set); start it as a unit with "
                + "LoadCredential=\(KeyReason.credential)."
        case .noCredential:
            "The unit has no credential \(KeyReason.credential); give it one with LoadCredential=."
        case .otherCredential:
            "The credential \(KeyReason.credential) is not the one that the vault was sealed with. Give the unit the "
                + "right one and restart it."
        case .credentialTooShort:
            "The credential \(KeyReason.credential) is shorter than 32 bytes; give the unit a random one."
        case .credentialTooLarge: "The credential \(KeyReason.credential) is larger than 1 MiB."
        case .keyringNotAsked(let cause): "The keyring could not be asked: \(cause)."
        case .noKeyring(let cause): "The keyring is not there: \(cause)."
        case .notInKeyring: "The keyring has no key for this vault."
        case .keyringLocked: "The keyring is locked. Unlock it, and this goes on by itself."
        case .keyringFailed(let cause): "The keyring failed: \(cause)."
        case .keyringChangedKey: "The keyring did not return the key unchanged."
        case .notAKeyInKeyring: "The keyring's item for the vault is not a key."
        }
    }
}

extension FileFailure: Sentence {
    /// What was tried, where, why it failed, and what to do.
    var sentence: String {
        let doubt = isInDoubt ? " (it is written, but may not survive a power cut)" : ""
        return "Cannot \(action.verb) \(path): \(text(ofError: code))\(doubt); \(advice)."
    }

    private var advice: String {
        switch code {
        case ENOSPC: "free some space on that file system"
        case EDQUOT: "free some space, or have your quota raised"
        case EROFS: "make that file system writable, or choose another state directory"
        case EACCES, EPERM: "it must be yours, directories with mode 0700 and files with 0600"
        case EIO: "the disk reports errors: look into the kernel's log and save your data"
        case EMFILE, ENFILE: "close programs that hold many files, or raise the limit"
        case ENOENT, ESTALE: "it existed before: restore it if it was moved, and restart the daemon"
        case ELOOP, EISDIR, ENOTDIR: "a file of another kind is in its place: move it away"
        default: "try again"
        }
    }
}

extension FileFailure.Action {
    fileprivate var verb: String {
        switch self {
        case .makeRoom: "make room in"
        case .setAside: "set aside"
        default: rawValue
        }
    }
}
