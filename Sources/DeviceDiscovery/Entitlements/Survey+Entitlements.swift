internal import Codecs
package import SandboxModel
package import SystemIO

extension Survey {
  /// Reads the entitlements of a bundle (an app or an extension) from all sources.
  mutating func entitlements(
    of bundle: borrowing Directory, executable: ByteString?, as path: ByteString
  ) -> Entitlements {
    var entitlements = Entitlements()
    if let executable {
      for found in program(executable, in: bundle, as: path.appending(executable)) {
        add(
          found.propertyList, from: found.source, as: path.appending(executable), to: &entitlements)
      }
    }
    let archived: ByteString = "archived-expanded-entitlements.xcent"
    let file = path.appending(archived)
    if let bytes = bytes(of: archived, in: bundle, as: file, limit: Entitlements.limit) {
      add(bytes, from: .archivedEntitlements, as: file, to: &entitlements)
    }
    profile(of: bundle, as: path.appending("embedded.mobileprovision"), to: &entitlements)
    return entitlements
  }

  private mutating func program(
    _ name: ByteString, in bundle: borrowing Directory, as path: ByteString
  ) -> [MachO.Found] {
    guard isProgramName(name, as: path) else { return [] }
    do {
      guard let status = try bundle.statusIfPresent(name), status.kind == .file else { return [] }
      return try MachO.entitlements(in: try bundle.file(name))
    } catch {
      warn(.unusableFile, at: path, because: "its entitlements cannot be read: \(error.reason)")
      return []
    }
  }

  /// Whether a name is valid for an executable in a bundle; adds a warning if it is not.
  package mutating func isProgramName(_ name: ByteString, as path: ByteString) -> Bool {
    if name.components == [name], name != "..", name != ".", !name.hasNUL { return true }
    warn(.wrongValue, at: path, because: "CFBundleExecutable is not a file name")
    return false
  }

  /// Adds a property list with entitlements.
  package mutating func add(
    _ bytes: [UInt8], from source: EntitlementSource, as path: ByteString,
    to entitlements: inout Entitlements
  ) {
    // In old builds the archived form begins with the header of a signature blob.
    let list = bytes.starts(with: [0xfa, 0xde, 0x71, 0x71]) ? Array(bytes.dropFirst(8)) : bytes
    if let value = dictionary(list, as: path) { entitlements.add(value, from: source) }
  }

  private mutating func profile(
    of bundle: borrowing Directory, as path: ByteString, to entitlements: inout Entitlements
  ) {
    guard
      let bytes = bytes(
        of: "embedded.mobileprovision", in: bundle, as: path, limit: Entitlements.limit)
    else { return }
    add(profile: bytes, as: path, to: &entitlements)
  }

  /// Adds the entitlements in a provisioning profile.
  package mutating func add(
    profile bytes: [UInt8], as path: ByteString, to entitlements: inout Entitlements
  ) {
    guard let text = Entitlements.propertyList(inProfile: bytes) else {
      warn(.unusableFile, at: path, because: "it contains no property list")
      return
    }
    guard let value = dictionary(text, as: path) else { return }
    guard let named = value["Entitlements"], named.dictionaryValue != nil else {
      warn(.wrongValue, at: path, because: "it has no dictionary 'Entitlements'")
      return
    }
    entitlements.add(named, from: .provisioningProfile)
  }
}
