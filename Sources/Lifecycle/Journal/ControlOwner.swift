internal import SandboxModel
internal import SystemIO

/// Whose the program's own directories on a device are: the owner's of what they lie in, also where root makes
/// them. Else a restore by root would lock the device's user out.
enum ControlOwner {
  /// Gives the directories of a path to their owner, from `.sandboxctl` on, as far as root made them.
  static func give(_ path: ByteString) throws(SystemError) {
    guard Host.userID == 0 else { return }
    let parts = path.components
    guard let first = parts.firstIndex(of: OwnNames.directory) else { return }
    let above = ByteString("/").appending(join(parts[..<first]))
    let owner = try Directory.open(resolved: above).status()
    guard owner.user != 0 else { return }
    for end in first..<parts.count {
      let directory = try Directory.open(resolved: above.appending(join(parts[first...end])))
      if try directory.status().user == 0 {
        try directory.setOwner(user: owner.user, group: owner.group)
      }
    }
  }

  /// Gives what root just made in such a directory to the directory's owner.
  static func give(_ name: ByteString, in directory: borrowing Directory) throws(SystemError) {
    guard Host.userID == 0 else { return }
    let owner = try directory.status()
    if owner.user != 0 { try directory.setOwner(user: owner.user, group: owner.group, of: name) }
  }

  private static func join(_ parts: ArraySlice<ByteString>) -> ByteString {
    ByteString(parts.map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
  }
}
