"""KMS, DynamoDB and S3 on this machine: each is moto, asked directly and corrected where AWS answers otherwise."""
