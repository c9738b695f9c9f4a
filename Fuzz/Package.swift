// swift-tools-version: 6.2
import PackageDescription

// The sources are the house's own, by links; only they are instrumented, not what comes from outside. Built as the
// daemon is (optimized), with what a fuzzer needs: coverage of every branch, and an end at the first bad byte access.

let strict: [SwiftSetting] = [
    .strictMemorySafety(),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .unsafeFlags(["-sanitize=fuzzer,address", "-enable-testing"]),
]

func library(_ name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = []) -> Target {
    .target(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: strict)
}

let package = Package(
    name: "ringback-fuzz",
    targets: [
        .systemLibrary(name: "COpenSSL"),
        .systemLibrary(name: "CFuzzer"),
        .target(name: "CLinux"),
        .target(name: "CPostgres"),
        library("RingbackBase"),
        library("RingbackAPI", ["RingbackBase"]),
        library("Cryptography", ["COpenSSL", "RingbackBase"]),
        // Without the part that depends on another package.
        library("LocalHTTP", ["CLinux", "RingbackBase"], exclude: ["HTTPServer.swift"]),
        library("RingbackClient", ["RingbackAPI", "RingbackBase", "CLinux"]),
        library("Records", ["CLinux", "RingbackBase"]),
        library("OAuth", ["Cryptography", "RingbackBase"]),
        library("SupabaseAuth", ["OAuth", "Cryptography", "RingbackBase"]),
        library("SessionVault", ["CLinux", "Cryptography", "RingbackBase"]),
        library(
            "Configuration",
            ["MCPBridge", "OAuth", "SupabaseAuth", "PostgresClient", "RingbackBase"]
        ),
        // Only what tells links from callbacks: the desk behind it needs the whole broker.
        library("DeepLinks", ["RingbackBase"]),
        library("SchemeRegistration", ["RingbackBase"]),
        library("SignInPage", ["Cryptography", "RingbackBase"]),
        library("Terminal", ["RingbackBase"]),
        library("MCPBridge", ["RingbackClient", "RingbackBase", "Terminal"]),
        library("Adapters", ["RingbackBase"]),
        // Only the record: what writes the files needs the whole broker.
        library("KeptFiles", ["RingbackBase"]),
        library("PostgresClient", ["CPostgres", "CLinux", "RingbackBase"]),
        library("SharedVault", ["SessionVault", "Cryptography", "RingbackBase"]),
        // Without the statements.
        library("RowDatabase", ["SharedVault", "PostgresClient", "RingbackBase"]),
        library(
            "FuzzLaws",
            [
                "Adapters", "DeepLinks", "KeptFiles", "MCPBridge", "SchemeRegistration", "SignInPage", "LocalHTTP",
                "RingbackClient", "Records", "OAuth", "SupabaseAuth", "SessionVault", "Configuration", "RingbackBase",
                "Cryptography", "RingbackAPI", "PostgresClient", "SharedVault", "RowDatabase", "Terminal",
            ]
        ),
        .executableTarget(
            name: "fuzz", dependencies: ["FuzzLaws", "CFuzzer"], swiftSettings: strict,
            // gold fails on the debug information of instrumented code.
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address", "-use-ld=lld"])]
        ),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .c17
)
