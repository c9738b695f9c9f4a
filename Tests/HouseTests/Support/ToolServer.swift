import Glibc
import Testing

extension Stage {
    /// Starts the HTTPS server of Tests/Programs/tool_server.py.
    ///
    /// - Returns: the program, which prints a line for each request, and its port.
    func startToolServer() async throws -> (program: Program, port: String) {
        let program = try start(
            "/usr/bin/env", ["python3", "-B", "\(Document.root)/Tests/Programs/tool_server.py", directory])
        return (program, try await program.line("the port of the tools' server"))
    }

    /// Makes a link to `ringback` with another name, in a folder of `PATH`.
    func link(ringbackAs name: String, in folder: String? = nil) {
        let path = "\(folder ?? "\(directory)/bin")/\(name)"
        unsafe unlink(path)
        #expect(unsafe symlink(Programs.path("ringback"), path) == 0)
    }
}
