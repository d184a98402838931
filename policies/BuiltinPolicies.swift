/// The built-in policy files, which are in this directory.
package enum BuiltinPolicies {
  /// A file: its name, its bytes, and the values of its first keys.
  package struct File: Sendable {
    package let name: String
    package let bytes: [UInt8]
    /// The policy's name.
    package let policy: String
    /// The name of its layout, or nil for none.
    package let layout: String?
    /// The policies that it extends.
    package let bases: [String]

    init(_ policy: String, _ bytes: [UInt8], layout: String? = nil, extends bases: [String] = []) {
      name = "\(policy).yaml"
      self.bytes = bytes
      self.policy = policy
      self.layout = layout
      self.bases = bases
    }
  }

  /// The policies, each after those that it extends.
  package static let files: [File] = [
    File("common", PackageResources.common_yaml),
    File("apple", PackageResources.apple_yaml, extends: ["common"]),
    File(
      "ios", PackageResources.ios_yaml, layout: "coresimulator", extends: ["common", "apple"]),
    File("flatpak", PackageResources.flatpak_yaml, layout: "flatpak", extends: ["common"]),
    File("macos", PackageResources.macos_yaml, layout: "macos", extends: ["common", "apple"]),
    File("snap", PackageResources.snap_yaml, layout: "snap", extends: ["common"]),
    File("everything", PackageResources.everything_yaml, layout: "folder"),
  ]

  /// Returns the files of a policy and of those that it extends, in the order of `files`.
  ///
  /// - Parameters:
  ///   - name: The policy's name, or nil for the policy of the layout.
  /// - Returns: The files, or an empty array if there is no such policy.
  package static func files(policy name: String?, layout: String) -> [File] {
    guard let last = files.first(where: { name == nil ? $0.layout == layout : $0.policy == name })
    else { return [] }
    return files.filter { $0.policy == last.policy || last.bases.contains($0.policy) }
  }
}
