// swift-tools-version: 6.2
// The fuzzers: a package of their own, so that the product's never links a sanitizer.
// CONTRIBUTING.md, "Fuzzers", tells how it is built and run.
import PackageDescription

let package = Package(
  name: "fuzzers",
  dependencies: [.package(name: "sandboxctl", path: "..")],
  targets: [
    .executableTarget(
      name: "fuzz",
      dependencies: [.product(name: "SandboxctlModules", package: "sandboxctl")],
      swiftSettings: [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .treatAllWarnings(as: .error),
        .unsafeFlags(["-parse-as-library"]),
      ])
  ],
  swiftLanguageModes: [.v6]
)
