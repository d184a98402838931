internal import SandboxModel
internal import SystemIO

/// Whose the program's own folders on a device are: the owner's of what they lie in, also where root makes
/// them. Else a restore by root would lock the device's user out.
enum ControlOwner {
  /// Gives the folders of a path to their owner, from `.sandboxctl` on, as far as root made them.
  static func give(_ path: ByteString) throws(SystemError) {
    guard Host.userID == 0 else { return }
    let parts = path.components
    guard let first = parts.firstIndex(of: OwnNames.folder) else { return }
    let above = ByteString("/").appending(join(parts[..<first]))
    let owner = try Folder.open(resolved: above).status()
    guard owner.user != 0 else { return }
    for end in first..<parts.count {
      let folder = try Folder.open(resolved: above.appending(join(parts[first...end])))
      if try folder.status().user == 0 {
        try folder.setOwner(user: owner.user, group: owner.group)
      }
    }
  }

  /// Gives what root just made in such a folder to the folder's owner.
  static func give(_ name: ByteString, in folder: borrowing Folder) throws(SystemError) {
    guard Host.userID == 0 else { return }
    let owner = try folder.status()
    if owner.user != 0 { try folder.setOwner(user: owner.user, group: owner.group, of: name) }
  }

  private static func join(_ parts: ArraySlice<ByteString>) -> ByteString {
    ByteString(parts.map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
  }
}
