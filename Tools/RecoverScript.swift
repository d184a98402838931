/// The independent reader of the repository format from this directory.
package enum RecoverScript {
  /// The bytes of `recover.py`, which each new repository contains.
  package static let bytes: [UInt8] = PackageResources.recover_py
}
