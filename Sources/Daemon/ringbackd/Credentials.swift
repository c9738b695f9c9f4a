import Configuration
import Glibc
import Secrets

/// Secrets that were given to the daemon at its start, by name: through descriptors (`--credential-fd NAME=N`), or as
/// files in `$CREDENTIALS_DIRECTORY`, which systemd and containers set. The configuration has only their names. A
/// secret that came through a descriptor is kept in memory, since it cannot be read twice.
struct Credentials: Sendable {
    private let handed: [String: Secret]
    private let directory: String?

    /// Reads every descriptor to its end and closes it, so that no program that the daemon starts can read it. To be
    /// called before anything else opens descriptors: one of the numbers could then belong to the daemon.
    init(_ descriptors: [(name: String, descriptor: Int32)], directory: String?) throws(PlaceError) {
        self.directory = directory
        var handed: [String: Secret] = [:]
        for (name, descriptor) in descriptors {
            handed[name] = try Credentials.read(name, from: descriptor)
        }
        self.handed = handed
    }

    /// The credential of that name.
    ///
    /// - Throws: a sentence, if there is none or if its file is not to be trusted.
    func secret(named name: String) throws(CredentialError) -> Secret {
        if let secret = handed[name] { return secret }
        guard let directory else {
            throw CredentialError(reason: "the credential \(name) was not given to the daemon when it was started")
        }
        do throws(ConfigurationError) {
            return try CredentialFile.read(name, in: directory, user: geteuid())
        } catch {
            throw CredentialError(reason: "\(error.message) (a unit is given it by LoadCredential=\(name):PATH)")
        }
    }

    /// Standard input is replaced, not closed: the next descriptor would get its number.
    private static func release(_ descriptor: Int32) {
        let nothing = descriptor == STDIN_FILENO ? unsafe open("/dev/null", O_RDONLY | O_CLOEXEC) : -1
        if nothing > 0 {
            dup2(nothing, descriptor)
            close(nothing)
        } else {
            close(descriptor)
        }
    }

    private static func read(_ name: String, from descriptor: Int32) throws(PlaceError) -> Secret {
        do throws(CredentialDescriptor.Failure) {
            let secret = try CredentialDescriptor.read(descriptor)
            release(descriptor)
            return secret
        } catch {
            let reason =
                switch error {
                case .notOpen: "that descriptor is not open"
                case .notClosed: "the descriptor's other end does not close"
                case .unreadable: "the descriptor cannot be read"
                case .tooLong: "more than \(CredentialDescriptor.maxSize) bytes"
                }
            throw PlaceError(reason: "--credential-fd \(name)=\(descriptor): \(reason)")
        }
    }
}

/// Why a credential cannot be read, and what to do.
struct CredentialError: Error {
    let reason: String
}
