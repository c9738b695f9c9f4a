internal import Glibc

/// A running `client_secret_command` and its result: its output, or an error text that contains none of the output.
struct RunningCommand {
    /// Limits for a command.
    struct Bounds: Sendable {
        /// The maximum size of the output in bytes.
        var maxOutput = 65_536
        /// The maximum time. Users may have to type a passphrase meanwhile.
        var time: Duration = .seconds(60)
    }

    enum End {
        case secret([UInt8])
        case failure(String)
    }

    /// The id of the request.
    let request: Int
    let process: pid_t
    let deadline: SuspendingClock.Instant
    private let bounds: Bounds
    /// The reading end of its standard output; -1 after end of file.
    private(set) var descriptor: Int32
    private var output: [UInt8] = []
    private static let chunk = 16_384
    /// True when the process was reaped; its id may then be reused.
    private(set) var isReaped = false
    /// The time until the process is checked again: `poll` does not report the end of a process.
    private(set) var nextCheck = Duration.milliseconds(100)

    /// Starts the command in a process group of its own. Its input is empty, its standard error is ours.
    init(request: Int, command: [String], environment: [String], bounds: Bounds) throws(Spawn.Failure) {
        guard let program = command.first else { throw Spawn.Failure(code: EINVAL) }
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw Spawn.Failure(code: errno) }
        defer { close(ends[1]) }
        for end in ends { closeOnExec(end) }
        let spawn = Spawn(
            program: program, arguments: command, environment: environment, descriptor: ends[1], target: 1,
            hasEmptyInput: true, leadsGroup: true
        )
        do throws(Spawn.Failure) {
            process = try spawn.start()
        } catch {
            close(ends[0])
            throw error
        }
        self.request = request
        self.bounds = bounds
        deadline = .now.advanced(by: bounds.time)
        descriptor = ends[0]
        // Reserves the maximum at once: an array that grows would leave copies of a secret in memory.
        output.reserveCapacity(bounds.maxOutput + RunningCommand.chunk)
        setNonBlocking(descriptor)
    }

    /// Reads what the command has written. Kills it if that is too much.
    mutating func readOutput() -> End? {
        var buffer = [UInt8](repeating: 0, count: RunningCommand.chunk)
        defer { erase(&buffer) }
        while descriptor >= 0 {
            let count = unsafe read(descriptor, &buffer, buffer.count)
            if count < 0 {
                let code = errno
                if code == EINTR { continue }
                if code == EAGAIN { return nil }
            }
            guard count > 0 else {
                closeOutput()
                // Most programs end a moment after they close their output.
                nextCheck = .milliseconds(1)
                return nil
            }
            output.append(contentsOf: buffer[0..<count])
            if output.count > bounds.maxOutput { return abandon("printed more than \(bounds.maxOutput) bytes") }
        }
        return nil
    }

    /// Checks whether the process has ended. Descendants that keep its output open are not waited for.
    mutating func look() -> End? {
        var status: Int32 = 0
        let found = unsafe waitpid(process, &status, WNOHANG)
        if found < 0, errno != EINTR {
            isReaped = true
            return abandon("was lost")
        }
        if found == process {
            isReaped = true
            if let end = readOutput() { return end }
            closeOutput()
            return conclusion(status)
        }
        if SuspendingClock.now >= deadline {
            return abandon("did not finish within \(bounds.time.components.seconds) s")
        }
        if descriptor < 0 { nextCheck = min(nextCheck * 2, .milliseconds(100)) }
        return nil
    }

    /// Kills the process group and erases the output. The caller reaps the process, unless ``isReaped``.
    mutating func abandon(_ reason: String) -> End {
        if !isReaped || descriptor >= 0 { kill(-process, SIGKILL) }
        closeOutput()
        erase(&output)
        return .failure(reason)
    }

    private mutating func conclusion(_ status: Int32) -> End {
        defer { erase(&output) }
        let signal = status & 0x7F
        guard signal == 0 else { return .failure("was ended by signal \(signal)") }
        let code = (status >> 8) & 0xFF
        guard code == 0 else { return .failure("exited with status \(code)") }
        let count = (output.lastIndex { $0 != 0x0A && $0 != 0x0D } ?? -1) + 1
        // A copy, so that the buffer is not shared when it is zeroed.
        return count == 0 ? .failure("printed nothing") : .secret(Array(output[..<count]))
    }

    private mutating func closeOutput() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }
}
