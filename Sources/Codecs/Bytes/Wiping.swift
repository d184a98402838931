internal import CSodium

extension [UInt8] {
  /// Overwrites a secret in ordinary memory with zeros and removes it. Copies of the array are not
  /// wiped, so a secret must be the only reference to its bytes.
  public mutating func wipe() {
    unsafe withUnsafeMutableBufferPointer { bytes in
      guard let start = bytes.baseAddress else { return }
      unsafe sodium_memzero(start, bytes.count)
    }
    removeAll()
  }
}
