/// The policy files that are part of the program, as they lie in this folder.
public enum BuiltinPolicies {
  /// One file: its name and its bytes.
  public struct File: Sendable {
    public let name: String
    public let bytes: [UInt8]
  }

  /// The policies, the ones that others extend first.
  public static let files: [File] = [
    File(name: "common.yaml", bytes: PackageResources.common_yaml),
    File(name: "apple.yaml", bytes: PackageResources.apple_yaml),
    File(name: "ios.yaml", bytes: PackageResources.ios_yaml),
    File(name: "flatpak.yaml", bytes: PackageResources.flatpak_yaml),
    File(name: "macos.yaml", bytes: PackageResources.macos_yaml),
    File(name: "snap.yaml", bytes: PackageResources.snap_yaml),
    File(name: "everything.yaml", bytes: PackageResources.everything_yaml),
  ]

  /// The JSON Schema of a policy file, for editors and `policy schema`.
  public static let schema: [UInt8] = PackageResources.policy_schema_json
}
