import Glibc
import RingbackBase
import RingbackClient

/// The user's configuration file, which is changed as a whole: a changed copy is checked by the daemon's own reader and
/// then takes the file's place.
struct ConfigurationFile {
    /// The file as the daemon names it; may be a symbolic link, or missing.
    let path: String
    /// As `--config` named it.
    private let stated: String?

    /// - Parameter stated: the value of `--config`.
    init(stated: String?) throws(RingbackError) {
        self.stated = stated
        let named = try AccountFile(name: "", configuration: stated).configuration
        guard let whole = Path.absolute(named) else { throw CandidateFile.failure("find", named) }
        path = whole
    }

    /// The file's bytes; nil if there is no file.
    func text() throws(RingbackError) -> [UInt8]? {
        guard unsafe access(path, F_OK) == 0 else { return nil }
        return try DraftFile.bytes(of: path)
    }

    /// The report of the configuration as it is.
    func report() throws(RingbackError) -> JSON {
        // A named file that is missing would be a mistake.
        guard unsafe access(path, F_OK) == 0 else { return [:] }
        return try ConfigurationCheck.run(config: stated, candidate: nil)
    }

    /// Replaces the file by one with this text, if the daemon's check finds no mistake in it.
    ///
    /// - Parameter isMeant: checks that the new report differs from the old one as it is meant to.
    func replace(with text: [UInt8], if isMeant: (JSON) -> Bool) throws(RingbackError) {
        var status = stat()
        let exists = unsafe stat(path, &status) == 0
        let copy = CandidateFile(for: exists ? try resolved() : path)
        if !exists { try AccountFile.makeFolders(for: path) }
        try copy.write(text)
        do throws(RingbackError) {
            let report = try ConfigurationCheck.run(config: stated, replacing: path, with: copy.path)
            guard isMeant(report) else {
                throw RingbackError(
                    .invalidConfiguration, "\(path) cannot be changed by this command. Nothing was changed. Edit it.")
            }
            try copy.keep(replacing: exists, mode: exists ? status.st_mode & 0o777 : nil)
        } catch {
            copy.discard()
            throw error
        }
        // If there was no file, `keep` made a hard link, and the copy still exists under its own name.
        if !exists { copy.discard() }
    }

    /// The file itself: a rename must not replace a symbolic link.
    private func resolved() throws(RingbackError) -> String {
        guard let resolved = unsafe realpath(path, nil) else { throw CandidateFile.failure("read", path) }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }
}
