// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "OpenLinks",
    dependencies: [.package(name: "ringback", path: "../..")],
    targets: [
        .executableTarget(
            name: "OpenLinks", dependencies: [.product(name: "RingbackClient", package: "ringback")])
    ]
)
