import Foundation
import Testing

/// Which rooms each room may look into (docs/architecture.md). What is not listed is forbidden.
private let allowed: [String: Set<String>] = [
    "Secrets": [], "StrictJSON": [], "HTTPMessages": ["Secrets"], "RingbackAPI": ["StrictJSON"], "Terminal": [],
    "SchemeRegistration": ["HTTPMessages"],
    "Cryptography": ["COpenSSL", "Secrets"],
    "CurlTransport": ["CCurl", "HTTPMessages", "Secrets"],
    "LocalHTTP": ["HTTPMessages", "NIOCore", "NIOPosix", "ServiceLifecycle"],
    "RingbackClient": ["RingbackAPI", "StrictJSON", "CLinux"],
    "DesktopBus": ["CSystemd", "COpenSSL", "Cryptography", "Secrets"],
    "Launcher": ["CLinux", "DesktopBus", "Secrets", "StrictJSON"],
    "OAuth": ["Cryptography", "HTTPMessages", "Secrets", "StrictJSON"],
    "SupabaseAuth": ["OAuth", "Cryptography", "HTTPMessages", "Secrets", "StrictJSON"],
    "CallbackListener": ["LocalHTTP", "HTTPMessages", "CLinux", "ServiceLifecycle"],
    "Sandbox": ["LocalHTTP", "HTTPMessages", "Cryptography", "Secrets", "StrictJSON", "Terminal"],
    "SessionVault": ["CLinux", "Cryptography", "Secrets", "StrictJSON"],
    "Records": ["CLinux", "StrictJSON"],
    "NetworkWatch": ["CLinux"],
    "Configuration": ["OAuth", "SupabaseAuth", "HTTPMessages", "Secrets", "StrictJSON"],
    "BrokerCore": [
        "OAuth", "SupabaseAuth", "SessionVault", "Cryptography", "HTTPMessages", "Secrets", "StrictJSON",
    ],
    "DeepLinks": ["BrokerCore", "HTTPMessages", "Secrets", "StrictJSON"],
    "DesktopNotices": ["BrokerCore", "DesktopBus", "StrictJSON"],
    "APIServer": [
        "BrokerCore", "DeepLinks", "SupabaseAuth", "Records", "RingbackAPI", "LocalHTTP", "SessionVault",
        "HTTPMessages", "Secrets", "StrictJSON",
    ],
    "ringback": [
        "RingbackClient", "RingbackAPI", "SchemeRegistration", "HTTPMessages", "StrictJSON", "Terminal", "CLinux",
        "ArgumentParser",
    ],
    "ringback-sandbox": [
        "Sandbox", "LocalHTTP", "Secrets", "ArgumentParser", "ServiceLifecycle", "UnixSignals", "Logging",
    ],
]
/// Where parts are joined: no walls, but no full Foundation either.
private let joints: Set<String> = ["ringbackd"]
private let system: Set<String> = ["FoundationEssentials", "Synchronization", "Glibc", "Dispatch"]

@Suite struct `The house` {
    private static let sources = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Sources")

    @Test(arguments: allowed.keys.sorted()) func `a target imports only what it may`(target: String) throws {
        let mayImport = try #require(allowed[target])
        for file in try files(of: target) {
            let strangers = imports(of: try text(of: file)).subtracting(system).subtracting(mayImport)
            #expect(strangers.isEmpty, "\(target)/\(file.lastPathComponent)")
        }
    }

    @Test func `every Swift target has its walls`() throws {
        let found = try FileManager.default.contentsOfDirectory(atPath: Self.sources.path()).filter { name in
            try !files(of: name).isEmpty
        }
        #expect(Set(found) == Set(allowed.keys).union(joints))
    }

    @Test func `full Foundation is imported nowhere, so no ICU comes in`() throws {
        for target in allowed.keys.sorted() + joints {
            for file in try files(of: target) {
                #expect(!imports(of: try text(of: file)).contains("Foundation"), "\(target)/\(file.lastPathComponent)")
            }
        }
    }

    @Test func `the protocol core waits for nothing`() throws {
        for file in try files(of: "OAuth") + files(of: "SupabaseAuth") {
            let code = try text(of: file).split(separator: "\n").filter { !$0.contains("//") }
            #expect(!code.contains { $0.contains(" async") }, "\(file.lastPathComponent)")
        }
    }

    @Test func `a task is started in one function of the broker`() throws {
        let starters = try files(of: "BrokerCore").filter { try text(of: $0).contains("= Task {") }
        #expect(starters.map(\.lastPathComponent) == ["Work.swift"])
    }

    @Test func `a file is one idea`() throws {
        for target in allowed.keys.sorted() + joints {
            for file in try files(of: target) {
                let lines = try text(of: file).split(separator: "\n", omittingEmptySubsequences: false).count
                #expect(lines <= 301, "\(target)/\(file.lastPathComponent) has \(lines) lines")
            }
        }
    }

    private func files(of target: String) throws -> [URL] {
        let folder = Self.sources.appending(path: target)
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder.path()) else { return [] }
        return names.filter { $0.hasSuffix(".swift") }.sorted().map { folder.appending(path: $0) }
    }

    private func text(of file: URL) throws -> String { try String(contentsOf: file, encoding: .utf8) }

    private func imports(of text: String) -> Set<String> {
        Set(
            text.split(separator: "\n").compactMap { line in
                let words = line.split(separator: " ").drop {
                    ["public", "package", "internal", "private", "fileprivate"].contains($0) || $0.hasPrefix("@")
                }
                return words.first == "import" ? words.dropFirst().first.map(String.init) : nil
            })
    }
}
