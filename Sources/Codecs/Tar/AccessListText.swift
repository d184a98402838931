/// POSIX access control lists as the text that programs expect in a pax archive.
///
/// bsdtar extracts no attribute of the namespace `system`; `tar --acls` sets the lists in such
/// records, and for an entry without one the list of its mode. Without its list a file gets the
/// list's mask as the permissions of its group, which may be more than the group had.
enum AccessListText {
  /// Returns the record for an attribute that is a list in the kernel's form
  /// (include/uapi/linux/posix_acl_xattr.h), or nil for other attributes, invalid lists, and a list
  /// that contradicts the mode, which libarchive would take from the list.
  static func record(
    of attribute: PaxMember.Attribute, mode: UInt16
  ) -> (key: String, text: String)? {
    guard let text = text(attribute.value) else { return nil }
    switch attribute.name {
    case access: return agrees(attribute.value, with: mode) ? ("SCHILY.acl.access", text) : nil
    case inherited: return ("SCHILY.acl.default", text)
    default: return nil
    }
  }

  private static let access = Array("system.posix_acl_access".utf8)
  private static let inherited = Array("system.posix_acl_default".utf8)

  /// Whether a valid list has the permissions of a mode, whose group bits are those of the mask, if
  /// there is one (acl(5)).
  private static func agrees(_ value: [UInt8], with mode: UInt16) -> Bool {
    var permissions: [UInt8: UInt16] = [:]
    for start in stride(from: version.count, to: value.count, by: entrySize) {
      permissions[value[start]] = UInt16(value[start + 2] & 7)
    }
    let classes = [permissions[0x01], permissions[0x10] ?? permissions[0x04], permissions[0x20]]
    return classes == [mode >> 6 & 7, mode >> 3 & 7, mode & 7]
  }

  /// The version of the form, and the sizes of its header and of an entry.
  private static let version: [UInt8] = [2, 0, 0, 0]
  private static let entrySize = 8

  /// Returns the entries in the short form of acl(5), with numbers for users and groups.
  private static func text(_ value: [UInt8]) -> String? {
    let rest = value.dropFirst(version.count)
    guard value.starts(with: version), !rest.isEmpty, rest.count % entrySize == 0 else {
      return nil
    }
    var entries: [String] = []
    for start in stride(from: rest.startIndex, to: rest.endIndex, by: entrySize) {
      let number = rest[(start + 4)..<(start + 8)].reversed().reduce(0) { $0 << 8 | UInt32($1) }
      guard rest[start + 1] == 0, let name = name(of: rest[start], number) else { return nil }
      let bits = rest[start + 2]
      let permissions = zip("rwx", [4, 2, 1] as [UInt8]).map { letter, bit in
        bits & bit == 0 ? "-" : letter
      }
      entries.append(name + String(permissions))
    }
    return entries.joined(separator: ",")
  }

  /// Returns the beginning of an entry by its tag (include/uapi/linux/posix_acl.h).
  private static func name(of tag: UInt8, _ number: UInt32) -> String? {
    switch tag {
    case 0x01: "user::"
    case 0x02: "user:\(number):"
    case 0x04: "group::"
    case 0x08: "group:\(number):"
    case 0x10: "mask::"
    case 0x20: "other::"
    default: nil
    }
  }
}
