package import SystemIO

/// Rules for metadata that a migration does not copy, because it would grant privileges or belongs
/// to the system rather than to a user's data.
package enum MigratedMetadata {
  /// The treatment of an extended attribute.
  package enum Treatment: Equatable {
    case copied
    /// A label that the target's own policy sets, and that means nothing elsewhere. The copy gets
    /// its own label, so nothing is lost.
    case ofTargetPolicy
    /// The attribute is not copied, for a reason that the result states.
    case omitted(String)
  }

  /// Returns the treatment of an attribute.
  package static func treatment(of name: ByteString) -> Treatment {
    if name == "security.capability" {
      return .omitted("capabilities grant privileges; setcap(8) sets them again")
    }
    if policyLabels.contains(name) || has(name, "security.SMACK64") { return .ofTargetPolicy }
    if has(name, "security.") || has(name, "trusted.") {
      return .omitted("it belongs to the system, not to the app's data")
    }
    return .copied
  }

  /// Labels of security modules, and the hashes and signatures of IMA and EVM.
  private static let policyLabels: Set<ByteString> = [
    "security.selinux", "security.apparmor", "security.ima", "security.evm",
  ]

  private static func has(_ name: ByteString, _ prefix: String) -> Bool {
    name.bytes.starts(with: prefix.utf8)
  }

  private static let (setUserID, setGroupID): (UInt16, UInt16) = (0o4000, 0o2000)

  /// Returns the mode bits for a copy whose owner is already set. As in a restore, a directory
  /// keeps its set-group-ID bit, which only passes on the group, if the copy has the same group.
  static func permissions<Target: MetadataTarget & ~Copyable>(
    of status: FileStatus, on target: borrowing Target
  ) throws(SystemError) -> UInt16 {
    let plain = status.permissions & ~(setUserID | setGroupID)
    guard status.kind == .directory, status.permissions & setGroupID != 0,
      try target.status().group == status.group
    else { return plain }
    return plain | setGroupID
  }

  /// Returns the remark on mode bits that a copy lacks; nil if none of them is a set-ID bit.
  static func remark(onSetIDBits lost: UInt16) -> String? {
    switch (lost & setUserID != 0, lost & setGroupID != 0) {
    case (true, true): "its set-user-ID and set-group-ID bits are not copied"
    case (true, false): "its set-user-ID bit is not copied"
    case (false, true): "its set-group-ID bit is not copied"
    case (false, false): nil
    }
  }
}
