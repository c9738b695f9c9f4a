// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "SupabaseProfile",
    dependencies: [.package(name: "ringback", path: "../..")],
    targets: [
        .executableTarget(
            name: "SupabaseProfile", dependencies: [.product(name: "RingbackClient", package: "ringback")])
    ]
)
