import Adapters
import ArgumentParser
import Glibc
import RingbackClient
import Terminal

/// What the adapters have in common whose tools read an answer from standard output and a reason from standard error.
extension AdapterCalls {
    /// The credential for a place; nil if no origin is configured for it. Waits for a sign-in only on a terminal.
    func credential(_ request: AdapterRequest) throws(RingbackError) -> AdapterCredential? {
        do throws(RingbackError) {
            return try lookup(request) { Console.Stream.errors.isTerminal }
        } catch {
            guard error.kind == .notFound else { throw error }
            return nil
        }
    }

    /// True if an origin is configured for a place. The lookup names a refused token that the daemon never issued, so
    /// no token is issued or refreshed.
    func hasOrigin(_ request: AdapterRequest) throws(RingbackError) -> Bool {
        var lookup = OriginRequest(url: request.url)
        lookup.username = request.username
        lookup.rejected = String(repeating: "0", count: 64)
        do throws(RingbackError) {
            _ = try calls().lookup(lookup)
            return true
        } catch {
            guard error.kind == .notFound else { throw error }
            return false
        }
    }

    /// Looks a place up and prints the answer.
    ///
    /// - Parameters:
    ///   - otherwise: what is done if no origin is configured for the place; returns the exit status.
    ///   - answer: the tool's bytes.
    /// - Returns: the exit status.
    func answer(
        _ request: AdapterRequest, otherwise: () -> Int32 = { 0 },
        _ answer: (AdapterCredential) throws(AdapterFailure) -> [UInt8]
    ) throws(AdapterFailure) -> Int32 {
        let found: AdapterCredential?
        do throws(RingbackError) {
            found = try credential(request)
        } catch {
            AdapterCalls.show(error)
            return ExitStatus.of(error)
        }
        guard let found else { return otherwise() }
        return AdapterCalls.print(try answer(found))
    }

    /// Says that a place has no origin.
    static func noOrigin() -> Int32 {
        note("There is no origin for this URL. Run: ringback origin add URL --account ACCOUNT")
        return ExitStatus.failed
    }

    /// The exit status of an adapter's run. The reason for a refusal is printed on standard error.
    static func status(_ run: () throws(AdapterFailure) -> Int32) -> Int32 {
        do throws(AdapterFailure) {
            return try run()
        } catch {
            note(error.reason)
            return ExitStatus.failed
        }
    }

    /// An adapter's run as the run of a verb.
    static func verb(_ run: () throws(AdapterFailure) -> Int32) throws(ExitCode) {
        let status = status(run)
        if status != 0 { throw ExitCode(status) }
    }

    /// A line of standard input without its end, at least one byte more than is allowed if there is more; nil at the end.
    static func readLine(atMost limit: Int) -> [UInt8]? {
        var line: [UInt8] = []
        while line.count <= limit {
            let byte = getchar()
            guard byte != EOF else { return line.isEmpty ? nil : line }
            guard byte != 0x0A else { break }
            line.append(UInt8(truncatingIfNeeded: byte))
        }
        return line
    }
}
