internal import ArchiveStore
internal import SystemIO

/// Extended attributes that belong to the host's kernel rather than to the stored data: the label
/// of its security policy, and the hashes of IMA and EVM, which the kernel computes itself; and the
/// second names of ACLs on XFS, which snapshots of earlier versions have.
///
/// A signature (`evmctl ima_sign`, or that of a package) is data like other attributes. The first
/// byte of a value is its type: `enum evm_ima_xattr_type` in security/integrity/integrity.h.
enum HostAttribute {
  private enum ValueType {
    /// A hash of the content, in the old form and with the name of its algorithm.
    static let hashes: Set<UInt8> = [0x01, 0x04]
    /// A code with the host's key, and a signature that the kernel replaces by one. Both are about
    /// the inode's number as well.
    static let boundToInode: Set<UInt8> = [0x02, 0x03]
  }

  private static let contentHash: ByteString = "security.ima"
  private static let metadataHash: ByteString = "security.evm"

  /// Whether an attribute stays on an existing entry that is stored without it.
  static func isKept(_ name: ByteString) -> Bool {
    name == Attribute.hostLabel || name == contentHash || name == metadataHash
      || ExtendedAttributes.aliases.contains(name)
  }

  /// Whether a value is not restored: because it is wrong for any other inode (with EVM the kernel
  /// refuses it or computes another, and without EVM it would make the file unusable later), or
  /// because the ACL that it repeats is restored.
  static func isBound(_ name: ByteString, _ value: [UInt8]) -> Bool {
    ExtendedAttributes.aliases.contains(name)
      || name == metadataHash && value.first.map(ValueType.boundToInode.contains) ?? true
  }

  /// Whether the kernel refuses the value because it computes it itself.
  static func isComputed(_ name: ByteString, _ value: [UInt8]) -> Bool {
    name == contentHash && value.first.map(ValueType.hashes.contains) ?? true
  }

  /// Whether an attribute is irrelevant to the stored data, so that entries that differ only in it
  /// are the same.
  static func isIgnored(_ name: ByteString, _ value: [UInt8]) -> Bool {
    name == Attribute.hostLabel || isBound(name, value) || isComputed(name, value)
  }
}
