/// An open file or directory whose metadata can be set.
package protocol MetadataTarget: ~Copyable {
  /// The extended attributes.
  var attributes: ExtendedAttributes { get }
  /// Returns the current status.
  func status() throws(SystemError) -> FileStatus
  /// Sets the owner. This may clear the set-user-ID and set-group-ID bits.
  func setOwner(user: UInt32, group: UInt32) throws(SystemError)
  /// Sets the permission bits.
  func setPermissions(_ bits: UInt16) throws(SystemError)
  /// Sets the modification time.
  func setModified(_ time: Timestamp) throws(SystemError)
}

extension Descriptor: MetadataTarget {}
extension Directory: MetadataTarget {}
