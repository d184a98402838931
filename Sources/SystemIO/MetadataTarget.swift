/// An open file or directory whose metadata can be set.
public protocol MetadataTarget: ~Copyable {
  /// Its extended attributes.
  var attributes: ExtendedAttributes { get }
  /// What it has of them now.
  func status() throws(SystemError) -> FileStatus
  /// Sets the owner; set-user-id bits may be cleared by it.
  func setOwner(user: UInt32, group: UInt32) throws(SystemError)
  /// Sets the permission bits.
  func setPermissions(_ bits: UInt16) throws(SystemError)
  /// Sets the time of modification.
  func setModified(_ time: Timestamp) throws(SystemError)
}

extension Descriptor: MetadataTarget {}
extension Directory: MetadataTarget {}
