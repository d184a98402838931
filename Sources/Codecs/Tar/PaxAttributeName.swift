/// The names of extended attributes in the keys of pax records, `SCHILY.xattr.<name>`.
///
/// A key ends at the first `=`, so GNU tar writes `=` as `%3D` and `%` as `%25`, and decodes only
/// these two (xheader.c, `xattr_encode_keyword`). star writes names unchanged. libarchive writes an
/// attribute twice: its own key has the name percent-encoded, and so has this one, with everything
/// except printable ASCII encoded (archive_write_set_format_pax.c); it decodes only its own.
package enum PaxAttributeName {
  private static let (percent, equals) = (UInt8(ascii: "%"), UInt8(ascii: "="))

  /// Returns a name as GNU tar writes it.
  package static func encode(_ name: [UInt8]) -> [UInt8] {
    guard name.contains(where: { $0 == percent || $0 == equals }) else { return name }
    return name.flatMap { byte in
      switch byte {
      case percent: Array("%25".utf8)
      case equals: Array("%3D".utf8)
      default: [byte]
      }
    }
  }

  /// Returns a name as GNU tar reads it.
  package static func decode(_ name: [UInt8]) -> [UInt8] {
    var decoded: [UInt8] = []
    var rest = name[...]
    while let byte = rest.first {
      if rest.starts(with: "%3D".utf8) {
        decoded.append(equals)
        rest = rest.dropFirst(3)
      } else if rest.starts(with: "%25".utf8) {
        decoded.append(percent)
        rest = rest.dropFirst(3)
      } else {
        decoded.append(byte)
        rest = rest.dropFirst()
      }
    }
    return decoded
  }

  /// Returns the attributes of a member, as read by libarchive, with their own names. If libarchive
  /// wrote an attribute twice, the one with the decoded name stays.
  static func decoded(_ attributes: [PaxMember.Attribute]) -> [PaxMember.Attribute] {
    guard attributes.contains(where: { $0.name.contains(percent) }) else { return attributes }
    let all = Set(attributes)
    var (twice, own): (Set<[UInt8]>, Set<[UInt8]>) = ([], [])
    for attribute in attributes where attribute.name.contains(percent) {
      guard let name = PercentEncoding.decode(attribute.name),
        encodedByLibArchive(name) == attribute.name,
        all.contains(PaxMember.Attribute(name: name, value: attribute.value))
      else { continue }
      twice.insert(attribute.name)
      own.insert(name)
    }
    return attributes.compactMap { attribute in
      if own.contains(attribute.name) { return attribute }
      if twice.contains(attribute.name) { return nil }
      return PaxMember.Attribute(name: decode(attribute.name), value: attribute.value)
    }
  }

  /// Returns a name as libarchive writes it.
  private static func encodedByLibArchive(_ name: [UInt8]) -> [UInt8] {
    let digits = Array("0123456789ABCDEF".utf8)
    return name.flatMap { byte in
      (33...126).contains(byte) && byte != percent && byte != equals
        ? [byte] : [percent, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
  }
}
